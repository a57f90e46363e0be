// guarded() keeps exceptions inside the library (ERR-10): what a call throws becomes its answer.
//
// Nothing of kvkeep throws, but the standard library does where memory is short.
//
// Threads: any thread.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "kvkeep/status.h"

namespace kvkeep {

// Which reason a status names beside its code.
enum class Asked : uint8_t { kOther, kLoad, kSave };

// The status for a lack of memory. Needs none.
const Status& out_of_memory(Asked asked) noexcept;

// The exception that is being handled: kResourceExhausted where memory was short, without needing
// any, else kInternal.
Status status_of_exception(Asked asked) noexcept;

// `call` returns a Status or a Result.
template <typename Call>
auto guarded(Asked asked, Call call) noexcept -> decltype(call()) {
  try {
    return call();
  } catch (...) {
    return status_of_exception(asked);
  }
}

// `otherwise` is the answer where the call had to be given up.
template <typename Call>
auto guarded_or(std::decay_t<std::invoke_result_t<Call>> otherwise, Call call) noexcept
    -> decltype(otherwise) {
  try {
    return call();
  } catch (...) {
    return otherwise;
  }
}

// The call may be given up anywhere.
template <typename Call>
void guarded_task(Call call) noexcept {
  try {
    call();
  } catch (...) {  // NOLINT(bugprone-empty-catch)
  }
}

}  // namespace kvkeep
