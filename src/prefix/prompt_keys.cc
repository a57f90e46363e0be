#include "prefix/prompt_keys.h"

namespace kvkeep {
namespace {

// Those of the last range that begins before the block ends.
std::span<const Extra> extras_at(std::span<const ExtraRange> ranges, uint64_t end) {
  std::span<const Extra> extras;
  for (const ExtraRange& range : ranges) {
    if (range.start >= end) break;
    extras = range.extras;
  }
  return extras;
}

}  // namespace

Result<PromptKeys> PromptKeys::open(const PrefixOptions& options, uint32_t block_size) {
  if (block_size == 0) {
    return Status(Code::kInvalidArgument, "block_size: must be at least 1 token");
  }
  KVKEEP_TRY_ASSIGN(KeyChain chain, KeyChain::open(options.fields, options.recipe));
  return PromptKeys(options.fields, std::move(chain), block_size);
}

Result<KeyChain> PromptKeys::chain_of(const Prompt& prompt) const {
  for (size_t i = 1; i < prompt.extras.size(); ++i) {
    if (prompt.extras[i].start < prompt.extras[i - 1].start) {
      return Status(Code::kInvalidArgument, "extras: the ranges must ascend by start");
    }
  }
  if (prompt.salt.empty()) return chain_;
  Namespace fields = fields_;
  fields["salt"] = std::string(prompt.salt);
  return KeyChain::open(fields, chain_.recipe());
}

Namespace PromptKeys::shown_fields(const Prompt& prompt) const {
  Namespace fields = fields_;
  if (!prompt.salt.empty() || fields.count("salt") == 1) fields["salt"] = "salted";
  return fields;
}

Result<std::vector<PromptBlock>> PromptKeys::full_blocks(const KeyChain& chain,
                                                         const Prompt& prompt,
                                                         uint64_t limit) const {
  std::vector<PromptBlock> blocks;
  blocks.reserve(limit / block_size_);
  for (uint64_t end = block_size_; end <= limit; end += block_size_) {
    std::optional<BlockHash> parent;
    if (!blocks.empty()) parent = blocks.back().key;
    KVKEEP_TRY_ASSIGN(PromptBlock next, block(chain, prompt, parent, end - block_size_, end));
    blocks.push_back(std::move(next));
  }
  return blocks;
}

Result<PromptBlock> PromptKeys::block(const KeyChain& chain, const Prompt& prompt,
                                      const std::optional<BlockHash>& parent, uint64_t begin,
                                      uint64_t end) const {
  const auto own = prompt.tokens.subspan(begin, end - begin);
  KVKEEP_TRY_ASSIGN(BlockHash key, chain.next(parent, own, extras_at(prompt.extras, end)));
  KVKEEP_TRY_ASSIGN(const TokenDigest digest, token_digest(own));
  return PromptBlock{std::move(key), parent, digest, begin, end};
}

}  // namespace kvkeep
