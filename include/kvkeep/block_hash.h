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

  friend bool operator==(const BlockHash& a, const BlockHash& b);
  friend bool operator<(const BlockHash& a, const BlockHash& b);
  size_t hash_value() const;

 private:
  static constexpr size_t kInline = 32;
  BlockHash() = default;

  uint8_t size_ = 0;
  std::array<std::byte, kInline> inline_{};
  std::shared_ptr<const std::array<std::byte, kMaxBytes>> long_;
};

}  // namespace kvkeep

template <>
struct std::hash<kvkeep::BlockHash> {
  size_t operator()(const kvkeep::BlockHash& h) const noexcept { return h.hash_value(); }
};
