// RecordingLogger keeps every message.
//
// Threads: any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "kvkeep/environment.h"

namespace kvkeep::testing {

class RecordingLogger : public Logger {
 public:
  struct Line {
    LogLevel level = LogLevel::kDebug;
    std::string message;
  };

  void log(LogLevel level, std::string_view message) override KVKEEP_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    lines_.push_back({level, std::string(message)});
  }

  std::vector<Line> lines() const KVKEEP_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return lines_;
  }
  bool contains(std::string_view part) const { return count(part) > 0; }
  // How many messages contain `part`.
  size_t count(std::string_view part) const KVKEEP_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    size_t n = 0;
    for (const Line& line : lines_) n += line.message.find(part) != std::string::npos ? 1 : 0;
    return n;
  }
  size_t count(LogLevel level) const KVKEEP_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    size_t n = 0;
    for (const Line& line : lines_) n += line.level == level ? 1 : 0;
    return n;
  }
  void clear() KVKEEP_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    lines_.clear();
  }

 private:
  mutable Mutex mu_;
  std::vector<Line> lines_ KVKEEP_GUARDED_BY(mu_);
};

}  // namespace kvkeep::testing
