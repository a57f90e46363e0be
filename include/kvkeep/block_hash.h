// BlockHash: the key of a block, an opaque byte string of 1 to 119 bytes.
//
// Usually the 32 bytes of a token-chain hash (chain_keys.h). Compared bytewise. Keys of up to 32
// bytes live inside the object; longer ones are shared on the heap.
//
// Threads: immutable; may be copied between threads freely.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kvkeep/status.h"

namespace kvkeep {

using BytesView = std::span<const std::byte>;

class BlockHash {
 public:
  static constexpr size_t kMaxBytes = 119;

  // kInvalidArgument unless 1 to 119 bytes are given.
  static Result<BlockHash> from_bytes(BytesView bytes);
  // Lower-case hex, two characters per byte. kInvalidArgument for anything else.
  static Result<BlockHash> from_hex(std::string_view hex);

  BytesView bytes() const { return {size_ <= kInline ? inline_.data() : long_->data(), size_}; }
  std::string to_hex() const;
  // The first 16 hex characters: what logs and messages show.
  std::string short_hex() const;

  friend bool operator==(const BlockHash& a, const BlockHash& b) {
    if (a.size_ != b.size_) return false;
    const size_t compared = a.size_ <= kInline ? kInline : 0;  // Unused bytes are 0.
    return std::memcmp(a.inline_.data(), b.inline_.data(), compared) == 0 &&
           (compared != 0 || a.same_long(b));
  }
  friend bool operator<(const BlockHash& a, const BlockHash& b);
  // Not the same in every process or version.
  size_t hash_value() const { return size_ == kInline ? mix_inline() : hash_bytes(); }

 private:
  static constexpr size_t kInline = 32;
  BlockHash() = default;

  // Of keys as they usually are. Other keys of 32 bytes may differ in few of them, so all count.
  size_t mix_inline() const {
    std::array<uint64_t, 4> words;
    std::memcpy(words.data(), inline_.data(), kInline);
    const uint64_t low = (words[0] ^ (words[1] << 23 | words[1] >> 41)) * 0x9e3779b97f4a7c15u;
    const uint64_t high = (words[2] ^ (words[3] << 41 | words[3] >> 23)) * 0xc2b2ae3d27d4eb4fu;
    uint64_t mixed = low ^ (high << 32 | high >> 32);
    mixed = (mixed ^ mixed >> 32) * 0x165667b19e3779f9u;
    mixed = (mixed ^ mixed >> 29) * 0x9e3779b97f4a7c15u;
    return mixed ^ mixed >> 32;
  }
  size_t hash_bytes() const;
  bool same_long(const BlockHash& other) const;

  uint8_t size_ = 0;
  std::array<std::byte, kInline> inline_{};
  std::shared_ptr<const std::array<std::byte, kMaxBytes>> long_;
};

}  // namespace kvkeep

template <>
struct std::hash<kvkeep::BlockHash> {
  size_t operator()(const kvkeep::BlockHash& h) const noexcept { return h.hash_value(); }
};
