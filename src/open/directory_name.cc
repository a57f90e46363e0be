#include "open/directory_name.h"

#include "base/bytes.h"
#include "hash/sha256.h"

namespace kvkeep {
namespace {

constexpr size_t kMaxBytes = 200;  // File systems take 255.
constexpr size_t kKeptBytes = 120;
constexpr size_t kDigestBytes = 16;

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

void append_escaped(std::string& out, char c) {
  static constexpr std::string_view digits = "0123456789ABCDEF";
  const auto value = static_cast<unsigned char>(c);
  out += '%';
  out += digits[value >> 4];
  out += digits[value & 15];
}

}  // namespace

Result<std::string> directory_name(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool hides = name.empty() && c == '.';
    if (is_plain(c) && !hides) {
      name += c;
    } else {
      append_escaped(name, c);
    }
  }
  if (name.size() <= kMaxBytes) return name;
  Sha256 sha;
  sha.start();
  sha.add(as_byte_span(text));
  KVKEEP_TRY_ASSIGN(const Sha256::Digest digest, sha.finish());
  // "%-" is in no name that was not cut.
  return name.substr(0, kKeptBytes) + "%-" + to_hex(BytesView(digest).first(kDigestBytes));
}

}  // namespace kvkeep
