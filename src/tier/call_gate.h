// CallGate lets calls in until it is closed, and lets close() wait for those that are inside.
//
// Threads: any thread. mu_ is a leaf lock.
#pragma once

#include <cstdint>

#include "base/mutex.h"
#include "kvkeep/environment.h"

namespace kvkeep {

class CallGate {
 public:
  // A call's stay inside. False if the gate was closed: then the call must do nothing.
  class Pass {
   public:
    explicit Pass(CallGate& gate) : gate_(gate), inside_(gate.enter()) {}
    ~Pass() {
      if (inside_) gate_.leave();
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    explicit operator bool() const { return inside_; }

   private:
    CallGate& gate_;
    const bool inside_;
  };

  bool is_closed() const KVKEEP_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return closed_;
  }
  void close() KVKEEP_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    closed_ = true;
  }
  // True once nobody is inside; false if `deadline` of the clock passed first.
  bool wait_empty(Clock& clock, Duration deadline) KVKEEP_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    bool in_time = true;
    while (inside_ > 0 && in_time) in_time = left_.wait_until(mu_, clock, deadline);
    return inside_ == 0;
  }

 private:
  bool enter() KVKEEP_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    if (!closed_) ++inside_;
    return !closed_;
  }
  void leave() KVKEEP_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    if (--inside_ == 0) left_.notify_all();
  }

  mutable Mutex mu_;
  CondVar left_;
  uint64_t inside_ KVKEEP_GUARDED_BY(mu_) = 0;
  bool closed_ KVKEEP_GUARDED_BY(mu_) = false;
};

}  // namespace kvkeep
