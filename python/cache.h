// Cache: an open cache as Python holds it, and the two ways to wait for its calls.
//
// Threads: with the GIL.
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "errors.h"
#include "kvkeep/block_cache.h"

namespace kvkeep::python {

// `call` runs without the GIL: it must not touch Python.
template <typename Call>
auto without_gil(Call call) {
  const nb::gil_scoped_release release;
  return call();
}

// For calls that may wait long: as without_gil(), and Ctrl-C ends the wait with KeyboardInterrupt.
// The call then goes on by itself, so it must own what it uses.
template <typename Call>
auto interruptible(Call call) -> decltype(call()) {
  constexpr auto kLookForSignalsEvery = std::chrono::milliseconds(200);
  std::packaged_task<decltype(call())()> task(std::move(call));
  auto answer = task.get_future();
  std::thread(std::move(task)).detach();
  const auto ready = [&] {
    return answer.wait_for(kLookForSignalsEvery) == std::future_status::ready;
  };
  while (!without_gil(ready)) {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  return answer.get();
}

// What kvkeep.BlockCache stands on.
class Cache {
 public:
  explicit Cache(Options options)
      : cache_(value_or_raise(
            without_gil([&] { return TieredBlockCache::open(std::move(options)); }))) {}
  ~Cache() {
    // A forked child has none of the threads that a close waits for.
    if (owner_ != getpid()) {
      new std::shared_ptr<TieredBlockCache>(cache_);  // Never destroyed.
      return;
    }
    // Even where an interrupted call still holds the cache, it is closed from here on.
    without_gil([this] {
      static_cast<void>(cache_->close());
      cache_.reset();
    });
  }
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  TieredBlockCache* operator->() const { return cache_.get(); }
  // For calls that may outlive this object.
  std::shared_ptr<TieredBlockCache> share() const { return cache_; }

 private:
  const pid_t owner_ = getpid();
  std::shared_ptr<TieredBlockCache> cache_;
};

// An object of a class of kvkeep/_values.py.
template <typename... Fields>
nb::object new_value(const char* name, Fields&&... fields) {
  return nb::module_::import_("kvkeep._values").attr(name)(std::forward<Fields>(fields)...);
}

}  // namespace kvkeep::python
