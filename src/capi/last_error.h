// What the calling thread's last C call has to say, and the fence that no exception crosses.
//
// Threads: each has its own.
#pragma once

#include <string>
#include <utility>

#include "kvkeep/c.h"
#include "kvkeep/status.h"

namespace kvkeep::capi {

// Keeps message and reason without allocating. Its code as a kvkeep_status.
kvkeep_status tell(const Status& status) noexcept;
// The exception that is being handled, as tell().
kvkeep_status tell_exception() noexcept;

// `call` returns a Status; what it throws becomes one.
template <typename Call>
kvkeep_status fenced(Call call) noexcept {
  try {
    return tell(call());
  } catch (...) {
    return tell_exception();
  }
}

inline Status invalid(std::string message) {
  return Status(Code::kInvalidArgument, std::move(message));
}

}  // namespace kvkeep::capi
