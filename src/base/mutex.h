// std::mutex with the attributes that clang's -Wthread-safety needs, and a condition variable for
// it.
#pragma once

#include <condition_variable>
#include <mutex>

#include "kvkeep/environment.h"

#if defined(__clang__)
#define KVKEEP_ATTR(x) __attribute__((x))
#else
#define KVKEEP_ATTR(x)
#endif
#define KVKEEP_GUARDED_BY(mu) KVKEEP_ATTR(guarded_by(mu))
#define KVKEEP_REQUIRES(...) KVKEEP_ATTR(requires_capability(__VA_ARGS__))
#define KVKEEP_EXCLUDES(...) KVKEEP_ATTR(locks_excluded(__VA_ARGS__))
#define KVKEEP_NO_ANALYSIS KVKEEP_ATTR(no_thread_safety_analysis)

namespace kvkeep {

class KVKEEP_ATTR(capability("mutex")) Mutex {
 public:
  void lock() KVKEEP_ATTR(acquire_capability()) { mu_.lock(); }
  void unlock() KVKEEP_ATTR(release_capability()) { mu_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mu_;
};

class KVKEEP_ATTR(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mu) KVKEEP_ATTR(acquire_capability(mu)) : mu_(mu) { mu_.lock(); }
  ~MutexLock() KVKEEP_ATTR(release_capability()) { mu_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mu_;
};

// REQUIRES, for both waits: `mu` is held. It is released while waiting and held again on return.
// Waits may wake early: call them in a loop over the condition.
class CondVar {
 public:
  void notify_all() { cv_.notify_all(); }
  void wait(Mutex& mu) KVKEEP_REQUIRES(mu) {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }
  // False if `deadline` (of clock.mono()) has passed.
  bool wait_until(Mutex& mu, Clock& clock, Duration deadline) KVKEEP_REQUIRES(mu) {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    const bool in_time = clock.wait_until(cv_, lock, deadline);
    lock.release();
    return in_time;
  }

 private:
  std::condition_variable cv_;
};

}  // namespace kvkeep
