// Spans of bytes, little-endian integers, hex, UTF-8: the small change of every format.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace kvkeep {

static_assert(std::endian::native == std::endian::little,
              "formats are written as they lie in memory");

// REQUIRES: p points at sizeof(T) bytes.
template <typename T>
T load_le(const void* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <typename T>
void store_le(void* p, T v) {
  std::memcpy(p, &v, sizeof v);
}

constexpr uint64_t round_up(uint64_t n, uint64_t unit) { return (n + unit - 1) / unit * unit; }

inline std::span<const std::byte> as_byte_span(std::string_view s) {
  return {reinterpret_cast<const std::byte*>(s.data()), s.size()};
}
inline std::string_view as_text(std::span<const std::byte> b) {
  return {reinterpret_cast<const char*>(b.data()), b.size()};
}

// Lower-case hex, two characters per byte.
std::string to_hex(std::span<const std::byte> bytes);
// False, with `out` unspecified, unless `hex` is an even number of lower-case hex characters.
bool from_hex(std::string_view hex, std::string& out);

// No overlong forms, no surrogates, nothing beyond U+10FFFF.
bool is_valid_utf8(std::string_view text);
// The code point at text[i]; moves i behind it. REQUIRES: `text` is UTF-8.
uint32_t take_utf8_point(std::string_view text, size_t& i);

}  // namespace kvkeep
