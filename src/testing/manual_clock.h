// ManualClock stands still until a test moves it. Whoever waits on it wakes when its deadline is
// reached.
//
// Threads: any thread. advance() must not be called with the mutex of a waiter held.
#pragma once

#include <algorithm>
#include <list>

#include "base/mutex.h"
#include "kvkeep/environment.h"

namespace kvkeep::testing {

class ManualClock : public Clock {
 public:
  static constexpr double kStartWall = 1767225600.25;

  double wall() const override {
    MutexLock lock(mu_);
    return kStartWall + wall_shift_ + std::chrono::duration<double>(now_).count();
  }
  Duration mono() const override {
    MutexLock lock(mu_);
    return now_;
  }

  bool wait_until(std::condition_variable& cv, std::unique_lock<std::mutex>& lock,
                  Duration deadline) override KVKEEP_EXCLUDES(mu_) {
    const auto self = enter(cv, *lock.mutex(), deadline);
    if (mono() < deadline) cv.wait(lock);
    leave(self, lock);
    return mono() < deadline;
  }

  // Both clocks.
  void advance(Duration by) KVKEEP_EXCLUDES(mu_) {
    {
      MutexLock lock(mu_);
      now_ += by;
    }
    wake_waiters();
  }
  // The wall clock alone, as when somebody sets it.
  void shift_wall(double seconds) {
    MutexLock lock(mu_);
    wall_shift_ += seconds;
  }

  // Returns once `count` threads wait on this clock. False after 30 s of real time: the test has
  // failed.
  [[nodiscard]] bool wait_for_waiters(size_t count) KVKEEP_EXCLUDES(mu_) {
    const std::shared_ptr<Clock> real = system_clock();
    const Duration limit = real->mono() + std::chrono::seconds(30);
    MutexLock lock(mu_);
    while (waiters_.size() < count) {
      if (!changed_.wait_until(mu_, *real, limit)) return false;
    }
    return true;
  }

 private:
  struct Waiter {
    std::condition_variable& cv;
    std::mutex& mutex;
    Duration deadline;
    bool being_woken = false;
  };
  using Waiters = std::list<Waiter>;

  Waiters::iterator enter(std::condition_variable& cv, std::mutex& mutex, Duration deadline) {
    MutexLock lock(mu_);
    changed_.notify_all();
    return waiters_.insert(waiters_.end(), Waiter{cv, mutex, deadline});
  }

  // The caller's mutex is given up meanwhile: wake_waiters() may be about to take it.
  void leave(Waiters::iterator self, std::unique_lock<std::mutex>& lock) KVKEEP_EXCLUDES(mu_) {
    lock.unlock();
    {
      MutexLock inner(mu_);
      while (self->being_woken) changed_.wait(mu_);
      waiters_.erase(self);
    }
    lock.lock();
  }

  // Taking the waiter's mutex once makes sure that it either waits or will look at the new time.
  void wake_waiters() KVKEEP_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    for (auto waiter = waiters_.begin(); waiter != waiters_.end();) {
      if (waiter->deadline > now_ || waiter->being_woken) {
        ++waiter;
        continue;
      }
      waiter->being_woken = true;
      mu_.unlock();
      { std::lock_guard<std::mutex> theirs(waiter->mutex); }
      waiter->cv.notify_all();
      mu_.lock();
      waiter->being_woken = false;
      changed_.notify_all();
      ++waiter;
    }
  }

  mutable Mutex mu_;
  CondVar changed_;
  Duration now_ KVKEEP_GUARDED_BY(mu_) = Duration::zero();
  double wall_shift_ KVKEEP_GUARDED_BY(mu_) = 0;
  Waiters waiters_ KVKEEP_GUARDED_BY(mu_);
};

}  // namespace kvkeep::testing
