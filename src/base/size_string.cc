#include "kvkeep/size_string.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace kvkeep {
namespace {

constexpr std::string_view kSpace = " \t\r\n\f\v";
constexpr double kTooLarge = 9223372036854775808.0;  // 2^63

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr std::array<Unit, 9> kUnits{{{"KB", 1024.0},
                                      {"MB", 1048576.0},
                                      {"GB", 1073741824.0},
                                      {"TB", 1099511627776.0},
                                      {"K", 1024.0},
                                      {"M", 1048576.0},
                                      {"G", 1073741824.0},
                                      {"T", 1099511627776.0},
                                      {"B", 1.0}}};

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

bool ends_with_unit(std::string_view text, std::string_view unit) {
  if (text.size() < unit.size()) return false;
  const std::string_view tail = text.substr(text.size() - unit.size());
  for (size_t i = 0; i < unit.size(); ++i) {
    const char upper = tail[i] >= 'a' && tail[i] <= 'z' ? static_cast<char>(tail[i] - 32) : tail[i];
    if (upper != unit[i]) return false;
  }
  return true;
}

Status bad_size(std::string_view text) {
  std::string hint = "write a number and B, KB, MB, GB or TB, such as 50GB";
  if (text.size() > 2 && ends_with_unit(text, "IB")) {
    hint = "write " + std::string(text.substr(0, text.size() - 2)) + "B (1KB is 1024 bytes)";
  }
  return Status(Code::kInvalidArgument, "size \"" + std::string(text) + "\": " + hint);
}

Result<uint64_t> plain_integer(std::string_view number, std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc() || end != number.data() + number.size() || value < 0)
    return bad_size(text);
  return static_cast<uint64_t>(value);
}

}  // namespace

Result<uint64_t> parse_size(std::string_view text) {
  const std::string_view trimmed = trim(text);
  const Unit* unit = nullptr;
  for (const Unit& candidate : kUnits) {
    if (unit == nullptr && ends_with_unit(trimmed, candidate.name)) unit = &candidate;
  }
  if (unit == nullptr) return plain_integer(trimmed, text);
  const std::string_view number = trim(trimmed.substr(0, trimmed.size() - unit->name.size()));
  // from_chars takes "inf" and "nan"; only digits begin a size.
  if (number.empty() || ((number[0] < '0' || number[0] > '9') && number[0] != '.'))
    return bad_size(text);
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc() || end != number.data() + number.size()) return bad_size(text);
  value *= unit->bytes;
  if (!std::isfinite(value) || value >= kTooLarge) return bad_size(text);
  return static_cast<uint64_t>(value);
}

std::string format_bytes(uint64_t bytes) {
  static constexpr std::array<const char*, 4> kNames{"KB", "MB", "GB", "TB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024.0;
  size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < kNames.size()) {
    value /= 1024.0;
    ++unit;
  }
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.2f%s", value, kNames[unit]);
  return text.data();
}

}  // namespace kvkeep
