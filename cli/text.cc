#include "cli/text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <ctime>

namespace kvkeep::cli {
namespace {

struct AgeUnit {
  char name;
  double seconds;
};
constexpr std::array<AgeUnit, 5> kAgeUnits{
    {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}}};
constexpr double kAgeMax = 1e12;  // Seconds; far beyond any file's.

// The length of the UTF-8 sequence that `text` begins with; 0 if there is none, or one that a
// terminal would take for a command.
size_t harmless_sequence(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (at(0) < 0x80) return at(0) >= 0x20 && at(0) != 0x7f ? 1 : 0;
  const size_t length = at(0) >= 0xf0 ? 4 : at(0) >= 0xe0 ? 3 : at(0) >= 0xc2 ? 2 : 0;
  if (length == 0 || at(0) > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  const bool c1_control = at(0) == 0xc2 && at(1) < 0xa0;
  return c1_control ? 0 : length;
}

}  // namespace

Result<double> parse_age(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const bool digit_first = !text.empty() && text[0] >= '0' && text[0] <= '9';
  const auto [after, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (digit_first && error == std::errc() && after + 1 == end) {
    for (const AgeUnit& unit : kAgeUnits) {
      if (*after == unit.name && number * unit.seconds <= kAgeMax) return number * unit.seconds;
    }
  }
  return Status(Code::kInvalidArgument, "age \"" + std::string(text) +
                                            "\": write a number and s, m, h, d or w, such as 12h");
}

std::string format_age(double seconds) {
  seconds = std::max(0.0, seconds);
  const AgeUnit* unit = &kAgeUnits[0];
  for (size_t i = 1; i < 4; ++i) {  // Weeks are for typing.
    if (seconds >= 2 * kAgeUnits[i].seconds) unit = &kAgeUnits[i];
  }
  return std::to_string(static_cast<uint64_t>(seconds / unit->seconds)) + unit->name;
}

std::string format_time(double seconds) {
  if (!(std::abs(seconds) < kAgeMax)) return "?";
  const auto whole = static_cast<std::time_t>(std::floor(seconds));
  std::tm parts{};
  if (::gmtime_r(&whole, &parts) == nullptr) return "?";
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

std::string count_of(uint64_t n, std::string_view noun) {
  return std::to_string(n) + " " + std::string(noun) + (n == 1 ? "" : "s");
}

Result<uint64_t> parse_count(std::string_view flag, std::string_view text) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && after == end && number > 0) return number;
  return Status(Code::kInvalidArgument, "--" + std::string(flag) + " \"" + std::string(text) +
                                            "\": write a whole number of at least 1");
}

std::string shown(std::string_view text) {
  if (text.empty()) return "-";
  std::string out;
  while (!text.empty()) {
    const size_t length = harmless_sequence(text);
    out += length > 0 ? std::string(text.substr(0, length)) : "?";
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

}  // namespace kvkeep::cli
