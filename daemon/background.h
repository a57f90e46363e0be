// Work that nobody waits for.
//
// Threads: the io thread.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <cstdint>
#include <exception>
#include <string>

#include "daemon/http/http.h"
#include "daemon/report/log.h"

namespace kvkeep::daemon {

// Starts `work`. Nothing of ours throws, but memory may end: then this work ends, with a line that
// begins with `what`, and everything else goes on.
inline void start(net::io_context& io, Log& log, std::string what, Async<void> work) {
  const auto end = [&log, what = std::move(what)](const std::exception_ptr& thrown) {
    if (thrown == nullptr) return;
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& error) {
      log.warn(what + " was given up: " + error.what());
    }
  };
  net::co_spawn(io, std::move(work), end);
}

// Counts what runs, for as long as it lives.
class Running {
 public:
  explicit Running(uint64_t& count) : count_(count) { ++count_; }
  ~Running() { --count_; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  uint64_t& count_;
};

}  // namespace kvkeep::daemon
