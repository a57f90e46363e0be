#include "kvkeep/block_hash.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"

namespace kvkeep {
namespace {

constexpr size_t kShortHexBytes = 8;

Status bad_key(std::string what) {
  return Status(Code::kInvalidArgument, "key: " + std::move(what) + "; expected 1 to 119 bytes");
}

}  // namespace

Result<BlockHash> BlockHash::from_bytes(BytesView bytes) {
  if (bytes.empty()) return bad_key("empty");
  if (bytes.size() > kMaxBytes) return bad_key(std::to_string(bytes.size()) + " bytes");
  BlockHash hash;
  hash.size_ = static_cast<uint8_t>(bytes.size());
  if (bytes.size() <= kInline) {
    std::copy(bytes.begin(), bytes.end(), hash.inline_.begin());
  } else {
    auto bytes_long = std::make_shared<std::array<std::byte, kMaxBytes>>();
    std::copy(bytes.begin(), bytes.end(), bytes_long->begin());
    hash.long_ = std::move(bytes_long);
  }
  return hash;
}

Result<BlockHash> BlockHash::from_hex(std::string_view hex) {
  std::string bytes;
  if (!kvkeep::from_hex(hex, bytes)) {
    return Status(Code::kInvalidArgument,
                  "key: \"" + std::string(hex.substr(0, 32)) +
                      "\" is not an even number of lower-case hex characters");
  }
  return from_bytes(as_byte_span(bytes));
}

std::string BlockHash::to_hex() const { return kvkeep::to_hex(bytes()); }

std::string BlockHash::short_hex() const {
  return kvkeep::to_hex(bytes().first(std::min(size_t{size_}, kShortHexBytes)));
}

bool BlockHash::same_long(const BlockHash& other) const {
  return std::memcmp(bytes().data(), other.bytes().data(), size_) == 0;
}

bool operator<(const BlockHash& a, const BlockHash& b) {
  return as_text(a.bytes()) < as_text(b.bytes());
}

size_t BlockHash::hash_bytes() const { return std::hash<std::string_view>{}(as_text(bytes())); }

}  // namespace kvkeep
