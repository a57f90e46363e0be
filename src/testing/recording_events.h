// RecordingEvents keeps every event that a cache tells.
//
// Threads: any thread.
#pragma once

#include <string>
#include <vector>

#include "base/mutex.h"
#include "kvkeep/event.h"

namespace kvkeep::testing {

class RecordingEvents : public EventSink {
 public:
  void on_event(const Event& event) override KVKEEP_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    names_.push_back(std::string(name_of(event.kind)));
  }

  // Names in the order in which the events came, and none of them a second time.
  std::vector<std::string> take() KVKEEP_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return std::exchange(names_, {});
  }

 private:
  Mutex mu_;
  std::vector<std::string> names_ KVKEEP_GUARDED_BY(mu_);
};

}  // namespace kvkeep::testing
