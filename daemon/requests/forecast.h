// Forecast: whether what the server makes of a form of chat can be foreseen.
//
// After a wrong forecast the next request is passed through, after another wrong one two, then four
// and so on: one odd chat does not end the caching of all others, and a form that is always odd
// costs little.
//
// Threads: the io thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace kvkeep::daemon {

class Forecast {
 public:
  static constexpr uint32_t kMostPassed = 64;  // In a row.

  void note_right() { penalty_ = 0; }
  void note_wrong() {
    penalty_ = penalty_ == 0 ? 1 : std::min(2 * penalty_, kMostPassed);
    to_pass_ = penalty_;
  }
  // Whether the next request is to be passed through, which is then counted.
  bool take_pass() {
    if (to_pass_ == 0) return false;
    --to_pass_;
    return true;
  }

 private:
  uint32_t penalty_ = 0;
  uint32_t to_pass_ = 0;
};

}  // namespace kvkeep::daemon
