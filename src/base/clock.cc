#include <chrono>

#include "kvkeep/environment.h"

namespace kvkeep {
namespace {

class SystemClock final : public Clock {
 public:
  double wall() const override {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration<double>(now).count();
  }
  Duration mono() const override { return std::chrono::steady_clock::now().time_since_epoch(); }
  bool wait_until(std::condition_variable& cv, std::unique_lock<std::mutex>& lock,
                  Duration deadline) override {
    // Far deadlines would overflow the clock's own arithmetic.
    const Duration now = mono();
    const Duration longest = std::chrono::hours(24);
    const Duration until = deadline > now + longest ? now + longest : deadline;
    cv.wait_until(lock, std::chrono::steady_clock::time_point(until));
    return mono() < deadline;
  }
};

}  // namespace

std::shared_ptr<Clock> system_clock() {
  static const auto clock = std::make_shared<SystemClock>();
  return clock;
}

}  // namespace kvkeep
