// ManualExecutor keeps tasks until a test runs them, in the order in which they were posted. Those
// that are left are dropped unrun. Delayed tasks count as posted when the clock reaches their time.
//
// Threads: any thread. Tasks run on the thread that asks for it, without locks.
#pragma once

#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "kvkeep/environment.h"

namespace kvkeep::testing {

class ManualExecutor : public Executor {
 public:
  explicit ManualExecutor(std::shared_ptr<Clock> clock) : clock_(std::move(clock)) {}

  void post(std::function<void()> task) override KVKEEP_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    tasks_.push_back(std::move(task));
    posted_.notify_all();
  }

  void post_after(Duration delay, std::function<void()> task) override KVKEEP_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    delayed_.emplace(clock_->mono() + delay, std::move(task));
  }

  // Tasks that could run now.
  size_t pending() const KVKEEP_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    const auto due = std::distance(delayed_.begin(), delayed_.upper_bound(clock_->mono()));
    return tasks_.size() + static_cast<size_t>(due);
  }
  // Tasks whose time has not come.
  size_t delayed() const KVKEEP_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return static_cast<size_t>(std::distance(delayed_.upper_bound(clock_->mono()), delayed_.end()));
  }

  // False if there was none.
  bool run_one() KVKEEP_EXCLUDES(mu_) {
    std::function<void()> task;
    {
      MutexLock lock(mu_);
      while (!delayed_.empty() && delayed_.begin()->first <= clock_->mono()) {
        tasks_.push_back(std::move(delayed_.begin()->second));
        delayed_.erase(delayed_.begin());
      }
      if (tasks_.empty()) return false;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
    return true;
  }

  // Up to `count`, those posted meanwhile included. How many were run.
  size_t run(size_t count) KVKEEP_EXCLUDES(mu_) {
    size_t done = 0;
    while (done < count && run_one()) ++done;
    return done;
  }
  size_t run_all() KVKEEP_EXCLUDES(mu_) { return run(std::numeric_limits<size_t>::max()); }

  // While `body` runs on this thread, another one runs tasks as they come: for calls that wait for
  // them.
  void run_during(const std::function<void()>& body) KVKEEP_EXCLUDES(mu_) {
    bool ended = false;
    std::thread runner([&] {
      for (;;) {
        run_all();
        MutexLock lock(mu_);
        while (tasks_.empty() && !ended) posted_.wait(mu_);
        if (tasks_.empty()) return;
      }
    });
    body();
    {
      MutexLock lock(mu_);
      ended = true;
      posted_.notify_all();
    }
    runner.join();
  }

 private:
  const std::shared_ptr<Clock> clock_;
  mutable Mutex mu_;
  CondVar posted_;
  std::deque<std::function<void()>> tasks_ KVKEEP_GUARDED_BY(mu_);
  std::multimap<Duration, std::function<void()>> delayed_ KVKEEP_GUARDED_BY(mu_);  // By due time.
};

}  // namespace kvkeep::testing
