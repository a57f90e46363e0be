// PromptKeys: a prompt cut into blocks, each with its key and the digest of its tokens.
//
// Threads: immutable.
#pragma once

#include <optional>
#include <vector>

#include "kvkeep/prefix_cache.h"

namespace kvkeep {

struct PromptBlock {
  BlockHash key;
  std::optional<BlockHash> parent;  // Key of the block before; none for the first.
  TokenDigest digest{};
  uint64_t begin = 0;  // Its tokens.
  uint64_t end = 0;

  uint32_t tokens() const { return static_cast<uint32_t>(end - begin); }
};

class PromptKeys {
 public:
  // Errors as PrefixCache::open().
  static Result<PromptKeys> open(const PrefixOptions& options, uint32_t block_size);

  // The chain of this prompt's namespace. kInvalidArgument where the recipe has no place for a
  // salt.
  Result<KeyChain> chain_of(const Prompt& prompt) const;
  // The fields of this prompt's namespace, without the secret: a salt is only "salted".
  Namespace shown_fields(const Prompt& prompt) const;
  // All full blocks among the first `limit` tokens.
  Result<std::vector<PromptBlock>> full_blocks(const KeyChain& chain, const Prompt& prompt,
                                               uint64_t limit) const;
  // The block of tokens [begin, end) after `parent`.
  Result<PromptBlock> block(const KeyChain& chain, const Prompt& prompt,
                            const std::optional<BlockHash>& parent, uint64_t begin,
                            uint64_t end) const;

  uint32_t block_size() const { return block_size_; }

 private:
  PromptKeys(Namespace fields, KeyChain chain, uint32_t block_size)
      : fields_(std::move(fields)), chain_(std::move(chain)), block_size_(block_size) {}

  Namespace fields_;
  KeyChain chain_;
  uint32_t block_size_;
};

}  // namespace kvkeep
