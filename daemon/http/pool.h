// Work that blocks, off the io thread.
#pragma once

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <exception>
#include <optional>
#include <type_traits>

#include "daemon/http/http.h"

namespace kvkeep::daemon {

// Runs `work` on a thread of the pool while this coroutine waits; what it throws is thrown here.
// The pool must be joined before the io context is destroyed.
template <class Work>
Async<std::invoke_result_t<Work&>> on_pool(net::thread_pool& pool, Work work) {
  const net::any_io_executor io = co_await net::this_coro::executor;
  std::optional<std::invoke_result_t<Work&>> result;
  std::exception_ptr thrown;
  bool done = false;  // Of the io thread.
  net::steady_timer timer(io, net::steady_timer::time_point::max());
  net::post(pool, [&] {
    try {
      result.emplace(work());
    } catch (...) {  // Out of memory. A thread of the pool would end the program.
      thrown = std::current_exception();
    }
    net::post(io, [&] {
      done = true;
      timer.cancel();
    });
  });
  while (!done) {
    ErrorCode cancelled;
    co_await timer.async_wait(into(cancelled));
  }
  if (thrown != nullptr) std::rethrow_exception(thrown);
  co_return *std::move(result);
}

}  // namespace kvkeep::daemon
