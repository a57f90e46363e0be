#include "cli/progress.h"

namespace kvkeep::cli {
namespace {

constexpr auto kQuietFor = std::chrono::seconds(1);
constexpr auto kBetween = std::chrono::milliseconds(100);
constexpr uint64_t kBarWidth = 30;

}  // namespace

std::string progress_line(const std::string& what, uint64_t done, uint64_t of,
                          const std::string& detail) {
  if (of == 0) return what + "  " + detail;
  const double share = static_cast<double>(done) / static_cast<double>(of);
  const auto filled = static_cast<uint64_t>(share * kBarWidth);
  return what + "  [" + std::string(filled, '#') + std::string(kBarWidth - filled, ' ') + "]  " +
         std::to_string(static_cast<uint64_t>(share * 100)) + " %  " + detail;
}

void Progress::update(uint64_t done, uint64_t of, const std::string& detail) {
  if (!console_.shows_progress()) return;
  const Time now = now_();
  if (now - started_ < kQuietFor || now - shown_ < kBetween) return;
  shown_ = now;
  console_.show_progress(progress_line(what_, done, of, detail));
}

}  // namespace kvkeep::cli
