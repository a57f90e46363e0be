// ManualExecutor keeps tasks until a test runs them, in the order in which they were posted. Those
// that are left are dropped unrun.
//
// Threads: any thread. Tasks run on the thread that asks for it, without locks.
#pragma once

#include <deque>
#include <limits>

#include "base/mutex.h"
#include "kvkeep/environment.h"

namespace kvkeep::testing {

class ManualExecutor : public Executor {
 public:
  void post(std::function<void()> task) override KVKEEP_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    tasks_.push_back(std::move(task));
  }

  size_t pending() const KVKEEP_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return tasks_.size();
  }

  // False if there was none.
  bool run_one() KVKEEP_EXCLUDES(mu_) {
    std::function<void()> task;
    {
      MutexLock lock(mu_);
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

 private:
  mutable Mutex mu_;
  std::deque<std::function<void()>> tasks_ KVKEEP_GUARDED_BY(mu_);
};

}  // namespace kvkeep::testing
