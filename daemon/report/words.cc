#include "daemon/report/words.h"

#include <cmath>
#include <cstdio>

namespace kvkeep::daemon {
namespace {

std::string one_decimal(double value, const char* unit) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f%s", value, unit);
  return text;
}

std::string whole(double value, const char* unit) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f%s", value, unit);
  return text;
}

}  // namespace

std::string format_count(uint64_t n) {
  std::string text = std::to_string(n);
  for (size_t at = text.size(); at > 3;) {
    at -= 3;
    text.insert(at, ",");
  }
  return text;
}

std::string format_duration(double seconds) {
  if (!(seconds > 0) || !std::isfinite(seconds)) return "0ms";
  // The limits are where the number, once rounded, would need the next form.
  if (seconds < 0.00995) return one_decimal(seconds * 1e3, "ms");
  if (seconds < 0.9995) return whole(seconds * 1e3, "ms");
  if (seconds < 9.95) return one_decimal(seconds, "s");
  if (seconds < 119.5) return whole(seconds, "s");
  if (seconds < 119.5 * 60) return whole(seconds / 60, " min");
  return whole(seconds / 3600, " h");
}

}  // namespace kvkeep::daemon
