#include "base/bytes.h"

#include <array>

namespace kvkeep {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// Length of the UTF-8 sequence that begins with `lead`, and the smallest code point it may encode.
struct Lead {
  size_t length;
  uint32_t least;
  uint32_t bits;
};

Lead read_lead(unsigned char c) {
  if (c < 0x80) return {1, 0, c};
  if ((c & 0xe0) == 0xc0) return {2, 0x80, c & 0x1fu};
  if ((c & 0xf0) == 0xe0) return {3, 0x800, c & 0x0fu};
  if ((c & 0xf8) == 0xf0) return {4, 0x10000, c & 0x07u};
  return {0, 0, 0};
}

}  // namespace

std::string to_hex(std::span<const std::byte> bytes) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (const std::byte b : bytes) {
    hex += digits[std::to_integer<size_t>(b) >> 4];
    hex += digits[std::to_integer<size_t>(b) & 15];
  }
  return hex;
}

bool from_hex(std::string_view hex, std::string& out) {
  if (hex.size() % 2 != 0) return false;
  out.clear();
  for (size_t i = 0; i < hex.size(); i += 2) {
    const int high = hex_value(hex[i]);
    const int low = hex_value(hex[i + 1]);
    if (high < 0 || low < 0) return false;
    out += static_cast<char>(high * 16 + low);
  }
  return true;
}

bool is_valid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const Lead lead = read_lead(static_cast<unsigned char>(text[i]));
    if (lead.length == 0 || lead.length > text.size() - i) return false;
    uint32_t point = lead.bits;
    for (size_t k = 1; k < lead.length; ++k) {
      const auto c = static_cast<unsigned char>(text[i + k]);
      if ((c & 0xc0) != 0x80) return false;
      point = point << 6 | (c & 0x3fu);
    }
    const bool surrogate = point >= 0xd800 && point <= 0xdfff;
    if (point < lead.least || point > 0x10ffff || surrogate) return false;
    i += lead.length;
  }
  return true;
}

uint32_t take_utf8_point(std::string_view text, size_t& i) {
  const auto lead = static_cast<unsigned char>(text[i++]);
  if (lead < 0x80) return lead;
  const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
  uint32_t point = lead & (0x3fu >> more);
  for (int k = 0; k < more; ++k)
    point = point << 6 | (static_cast<unsigned char>(text[i++]) & 0x3f);
  return point;
}

}  // namespace kvkeep
