#include "hash/python_text.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/bytes.h"

namespace kvkeep {
namespace {

struct Range {
  uint32_t first, last;
};

// Scripts and symbols that have been printable, every one of them, since Unicode 9 (Python 3.6).
constexpr auto kPrinted = std::to_array<Range>(
    {{0xa1, 0xac},     {0xae, 0x220},      {0x250, 0x2ad},     {0x2b0, 0x2ee},    {0x300, 0x34f},
     {0x388, 0x38a},   {0x38e, 0x3a1},     {0x3a3, 0x3ce},     {0x400, 0x486},    {0x488, 0x4ce},
     {0x4d0, 0x4f5},   {0x531, 0x556},     {0x561, 0x587},     {0x5d0, 0x5ea},    {0x621, 0x63a},
     {0x640, 0x655},   {0x660, 0x6dc},     {0x905, 0x939},     {0xe01, 0xe3a},    {0xe3f, 0xe5b},
     {0x10d0, 0x10f8}, {0x1100, 0x1159},   {0x1e00, 0x1e9b},   {0x1ea0, 0x1ef9},  {0x2010, 0x2027},
     {0x2030, 0x2052}, {0x20a0, 0x20b1},   {0x2100, 0x213a},   {0x2153, 0x2183},  {0x2190, 0x23ce},
     {0x2460, 0x24fe}, {0x2500, 0x2613},   {0x2619, 0x267d},   {0x2729, 0x274b},  {0x2761, 0x2794},
     {0x27f0, 0x2aff}, {0x3001, 0x303f},   {0x3041, 0x3096},   {0x3099, 0x30ff},  {0x3105, 0x312c},
     {0x3131, 0x318e}, {0x3400, 0x4db5},   {0x4e00, 0x9fa5},   {0xac00, 0xd7a3},  {0xf900, 0xfa2d},
     {0xff01, 0xffbe}, {0x1f300, 0x1f5ff}, {0x1f600, 0x1f64f}, {0x20000, 0x2a6d6}});

bool is_printed(uint32_t point) {
  const auto at = std::upper_bound(kPrinted.begin(), kPrinted.end(), point,
                                   [](uint32_t p, const Range& range) { return p < range.first; });
  return at != kPrinted.begin() && point <= std::prev(at)->last;
}

// Latin-1's controls, no-break space and soft hyphen.
bool is_escaped(uint32_t point) { return (point >= 0x80 && point <= 0xa0) || point == 0xad; }

char quote_of(std::string_view text) {
  const bool has_single = text.find('\'') != text.npos;
  const bool has_double = text.find('"') != text.npos;
  return has_single && !has_double ? '"' : '\'';
}

void append_hex(std::string& out, uint8_t value) {
  out += "\\x";
  out += to_hex(std::as_bytes(std::span(&value, 1)));
}

void append_byte(std::string& out, uint8_t value, char quote) {
  const char c = static_cast<char>(value);
  if (c == quote || c == '\\') {
    out += '\\';
    out += c;
  } else if (c == '\t' || c == '\n' || c == '\r') {
    out += c == '\t' ? "\\t" : c == '\n' ? "\\n" : "\\r";
  } else if (value >= 0x20 && value < 0x7f) {
    out += c;
  } else {
    append_hex(out, value);
  }
}

Status unknown_character(uint32_t point) {
  std::array<char, 16> name;
  std::snprintf(name.data(), name.size(), "U+%04X", static_cast<unsigned>(point));
  return Status(Code::kInvalidArgument,
                std::string("text extra: not every Python prints ") + name.data() +
                    " in the same way, so it has no key by omlx-1; give a digest of the text");
}

Result<std::string> quoted_text(std::string_view text) {
  const char quote = quote_of(text);
  std::string out(1, quote);
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const uint32_t point = take_utf8_point(text, i);
    if (point < 0x80 || is_escaped(point)) {
      append_byte(out, static_cast<uint8_t>(point), quote);
    } else if (is_printed(point)) {
      out += text.substr(begin, i - begin);
    } else {
      return unknown_character(point);
    }
  }
  return out + quote;
}

std::string quoted_bytes(std::string_view bytes) {
  const char quote = quote_of(bytes);
  std::string out = "b";
  out += quote;
  for (const char c : bytes) append_byte(out, static_cast<uint8_t>(c), quote);
  return out + quote;
}

}  // namespace

Result<std::string> python_text(const Extra& extra) {
  if (const auto* text = std::get_if<std::string>(&extra)) return quoted_text(*text);
  if (const auto* bytes = std::get_if<std::vector<std::byte>>(&extra)) {
    return quoted_bytes(as_text(*bytes));
  }
  return std::to_string(std::get<int64_t>(extra));
}

}  // namespace kvkeep
