#include "daemon/background.h"

#include <gtest/gtest.h>

#include <boost/asio/detached.hpp>
#include <new>
#include <thread>

#include "daemon/http/pool.h"
#include "daemon/testing/test_client.h"

namespace kvkeep::daemon {
namespace {

Async<void> run_out_of_memory(uint64_t& running) {
  const Running counted(running);
  net::steady_timer timer(co_await net::this_coro::executor, std::chrono::seconds(0));
  ErrorCode ignored;
  co_await timer.async_wait(into(ignored));
  throw std::bad_alloc();
}

TEST(Background, WorkThatRunsOutOfMemoryEndsAlone) {
  net::io_context io;
  Log log({LogLevel::kError, false});
  uint64_t running = 0;
  start(io, log, "first", run_out_of_memory(running));
  start(io, log, "second", run_out_of_memory(running));
  EXPECT_TRUE(run_until(io, [&] { return running == 2; }));
  EXPECT_NO_THROW(run_ready(io));
  EXPECT_TRUE(run_until(io, [&] { return running == 0; }));
}

Async<void> ask_pool(net::thread_pool& pool, std::string& seen) {
  try {
    co_await on_pool(pool, []() -> int { throw std::bad_alloc(); });
  } catch (const std::bad_alloc&) {
    seen = "thrown here";
  }
  const int after = co_await on_pool(pool, [] { return 7; });
  seen += ", then " + std::to_string(after);
}

TEST(Background, WhatAPoolThrowsIsThrownWhereItWasAsked) {
  net::thread_pool pool(1);
  net::io_context io;
  const auto kept_open = net::make_work_guard(io);
  Log log({LogLevel::kError, false});
  std::string seen;
  start(io, log, "asking", ask_pool(pool, seen));
  EXPECT_TRUE(run_until(io, [&] { return seen == "thrown here, then 7"; }));
  pool.join();
}

}  // namespace
}  // namespace kvkeep::daemon
