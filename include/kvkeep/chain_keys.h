// Keys of the blocks of a prompt. A key depends on every token before it, so equal keys mean equal
// prefixes. There are two recipes; `||` joins bytes.
//
// "kvkeep-1", the default (docs/contract.md B.20). Integers are little-endian, names are sorted
// bytewise:
//   root   = SHA-256( "kvkeep-chain-1" || u32 n || n x ( u32 len || name || u32 len || value ) )
//   key(p) = SHA-256( p || u32 n || n x u32 token || u32 m || m x ( u8 type || u32 len || bytes ) )
//
// "omlx-1", that of oMLX, for its directories. Tokens and extras are the texts that Python prints
// for a tuple of them, such as "(1, 2)" and "('img',)"; no extras add nothing:
//   key(p) = SHA-256( model || ( p, for the first block "omlx-root" ) || tokens || extras )
// Its parts are not told apart, and block size, adapters and salts have no place in it: use it only
// where its keys are wanted.
//
// Threads: any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kvkeep/block_hash.h"
#include "kvkeep/status.h"

namespace kvkeep {

enum class KeyRecipe : uint8_t { kKvkeep1, kOmlx1 };
// "kvkeep-1", "omlx-1"
std::string_view name_of(KeyRecipe recipe);
// kInvalidArgument naming those that there are.
Result<KeyRecipe> key_recipe_from_name(std::string_view name);

// What changes the state of a model for equal tokens: model, revision, adapter, kv_dtype, layout,
// salt, … An absent field differs from an empty one. "omlx-1" has the field "model" only, and there
// an empty one is absent.
using Namespace = std::map<std::string, std::string>;

// What else a block's state depends on, such as the image behind a run of placeholder tokens.
using Extra = std::variant<std::vector<std::byte>, std::string, int64_t>;

// The keys of one recipe and namespace, block by block.
//
// Threads: any thread; immutable.
class KeyChain {
 public:
  // kInvalidArgument naming the field: one that the recipe does not have, not UTF-8, longer than
  // 2^32 - 1 bytes.
  static Result<KeyChain> open(const Namespace& fields, KeyRecipe recipe = KeyRecipe::kKvkeep1);

  // The key of the block with these tokens after `parent`, the key of the block before it; none for
  // the first block. kInvalidArgument for a parent that is not 32 bytes, a text that is not UTF-8,
  // or, by "omlx-1", a text with a character that not every Python prints in the same way.
  Result<BlockHash> next(const std::optional<BlockHash>& parent, std::span<const uint32_t> tokens,
                         std::span<const Extra> extras = {}) const;

  KeyRecipe recipe() const { return recipe_; }
  // What stands for the parent of a first block. None by "omlx-1".
  const std::optional<BlockHash>& root() const { return root_; }

 private:
  explicit KeyChain(KeyRecipe recipe) : recipe_(recipe) {}

  KeyRecipe recipe_;
  std::optional<BlockHash> root_;  // Of kvkeep-1.
  std::string model_;              // Of omlx-1.
};

struct ChainOptions {
  uint32_t block_size = 0;  // Tokens of a full block; at least 1.
  Namespace fields{};
  bool partial = false;  // Also the key of a shorter last block.
  // Extras of block i; may be shorter than the number of blocks.
  std::vector<std::vector<Extra>> extras{};
  KeyRecipe recipe = KeyRecipe::kKvkeep1;
};

// Keys of the blocks of a prompt, in order. Incremental use: keep the last key and call
// KeyChain::next(). kInvalidArgument for block_size 0 or as KeyChain. Cost: one SHA-256 over 4
// bytes a token, by "omlx-1" over 2 more than its digits.
Result<std::vector<BlockHash>> chain_keys(std::span<const uint32_t> tokens,
                                          const ChainOptions& options);

}  // namespace kvkeep
