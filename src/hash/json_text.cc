#include "hash/json_text.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/bytes.h"

namespace kvkeep {
namespace {

void append_unit(std::string& out, uint32_t unit) {
  static constexpr std::string_view digits = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += digits[unit >> shift & 15];
}

void append_point(std::string& out, uint32_t point) {
  switch (point) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\b':
      out += "\\b";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\f':
      out += "\\f";
      return;
    case '\r':
      out += "\\r";
      return;
    default:
      break;
  }
  if (point >= 0x20 && point <= 0x7e) {
    out += static_cast<char>(point);
  } else if (point <= 0xffff) {
    append_unit(out, point);
  } else {
    append_unit(out, 0xd800 + ((point - 0x10000) >> 10));
    append_unit(out, 0xdc00 + ((point - 0x10000) & 0x3ff));
  }
}

// A finite double as its shortest digits d1 d2 … dn and the decimal exponent of d1.
struct Decimal {
  bool negative = false;
  std::string digits;
  int exponent = 0;
};

Decimal shortest(double value) {
  std::array<char, 32> text;
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific)
          .ptr;
  std::string_view left(text.data(), static_cast<size_t>(end - text.data()));
  Decimal decimal;
  if (left.front() == '-') {
    decimal.negative = true;
    left.remove_prefix(1);
  }
  const size_t e = left.find('e');
  for (const char c : left.substr(0, e)) {
    if (c != '.') decimal.digits += c;
  }
  left.remove_prefix(e + (left[e + 1] == '+' ? 2 : 1));
  std::from_chars(left.data(), left.data() + left.size(), decimal.exponent);
  return decimal;
}

std::string positional(const Decimal& decimal) {
  const auto digits = static_cast<int>(decimal.digits.size());
  if (decimal.exponent < 0) {
    return "0." + std::string(static_cast<size_t>(-decimal.exponent - 1), '0') + decimal.digits;
  }
  if (digits <= decimal.exponent + 1) {
    return decimal.digits + std::string(static_cast<size_t>(decimal.exponent + 1 - digits), '0') +
           ".0";
  }
  std::string text = decimal.digits;
  return text.insert(static_cast<size_t>(decimal.exponent + 1), 1, '.');
}

std::string with_exponent(const Decimal& decimal) {
  std::string text = decimal.digits;
  if (text.size() > 1) text.insert(1, 1, '.');
  const std::string exponent = std::to_string(std::abs(decimal.exponent));
  return text + (decimal.exponent < 0 ? "e-" : "e+") + (exponent.size() < 2 ? "0" : "") + exponent;
}

}  // namespace

std::string_view item_separator(JsonStyle style) {
  return style == JsonStyle::kSpaced ? ", " : ",";
}

bool append_json_string(std::string& out, std::string_view text) {
  if (!is_valid_utf8(text)) return false;
  out += '"';
  for (size_t i = 0; i < text.size();) append_point(out, take_utf8_point(text, i));
  out += '"';
  return true;
}

bool append_json_double(std::string& out, double value) {
  if (!std::isfinite(value)) return false;
  const Decimal decimal = shortest(value);
  if (decimal.negative) out += '-';
  const bool plain = decimal.exponent >= -4 && decimal.exponent < 16;
  out += plain ? positional(decimal) : with_exponent(decimal);
  return true;
}

bool append_json_strings(std::string& out, std::span<const std::string> items, JsonStyle style) {
  const size_t before = out.size();
  out += '[';
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += item_separator(style);
    if (!append_json_string(out, items[i])) {
      out.resize(before);
      return false;
    }
  }
  out += ']';
  return true;
}

}  // namespace kvkeep
