// What a cache needs from the process it lives in: time, threads, memory size, a place for
// messages.
//
// Every member may be replaced; what is left null is the system's own. Tests inject doubles here.
// Ownership: shared with the cache for as long as the cache or any of its tasks lives.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>

#include "kvkeep/event.h"
#include "kvkeep/status.h"

namespace kvkeep {

using Duration = std::chrono::nanoseconds;

// Threads: any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  // Seconds since the Unix epoch.
  virtual double wall() const = 0;
  // Time since an arbitrary start; never goes back.
  virtual Duration mono() const = 0;
  // Waits on `cv` until it is notified or mono() reaches `deadline`; may wake early. `lock` is held
  // on entry and on return. Returns false if the deadline has passed.
  virtual bool wait_until(std::condition_variable& cv, std::unique_lock<std::mutex>& lock,
                          Duration deadline) = 0;
};
std::shared_ptr<Clock> system_clock();

// Runs tasks later, on threads of its own. Tasks may block on the disk. An executor need not keep
// the order of tasks; the cache serialises what must not overlap.
//
// Threads: any thread.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual void post(std::function<void()> task) = 0;
  // Posts the task once `delay` has passed. Tasks whose time has not come when the executor ends
  // are dropped unrun.
  virtual void post_after(Duration delay, std::function<void()> task) = 0;
};
// `threads` threads. The destructor lets posted tasks finish, except that it does not wait for a
// task that is stuck in the system: such a thread ends by itself later.
std::shared_ptr<Executor> make_thread_executor(unsigned threads);

// Threads: any thread.
class SystemInfo {
 public:
  virtual ~SystemInfo() = default;
  virtual Result<int64_t> page_size() const = 0;  // Bytes.
  virtual Result<int64_t> physical_pages() const = 0;
};
std::shared_ptr<SystemInfo> system_info();

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError };
std::string_view name_of(LogLevel level);

// Messages never contain prompts, tokens or tensor bytes.
//
// Threads: called from any thread, never while the cache holds a lock.
class Logger {
 public:
  virtual ~Logger() = default;
  virtual void log(LogLevel level, std::string_view message) = 0;
};
// Warnings and errors to stderr, one line each: "kvkeep: message".
std::shared_ptr<Logger> stderr_logger();

struct Environment {
  std::shared_ptr<Clock> clock;
  std::shared_ptr<Executor> executor;  // Default: two threads of the cache's own.
  std::shared_ptr<SystemInfo> system;
  std::shared_ptr<Logger> logger;
  std::shared_ptr<EventSink> events;  // Default: nobody is told.
};

}  // namespace kvkeep
