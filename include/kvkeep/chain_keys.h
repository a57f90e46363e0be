// Keys of the blocks of a prompt: recipe "kvkeep-1".
//
//   root   = SHA-256( "kvkeep-chain-1" || u32 n || n x ( u32 len || name || u32 len || value ) )
//   key(p) = SHA-256( p || u32 n || n x u32 token || u32 m || m x ( u8 type || u32 len || bytes ) )
//
// Integers are little-endian; names are sorted bytewise. Source of the recipe: docs/contract.md
// B.20. A key depends on every token before it, so equal keys mean equal prefixes.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "kvkeep/block_hash.h"
#include "kvkeep/status.h"

namespace kvkeep {

// What changes the state of a model for equal tokens: model, revision, adapter, kv_dtype, layout,
// salt, … An absent field differs from an empty one.
using Namespace = std::map<std::string, std::string>;

// What else a block's state depends on, such as the image behind a run of placeholder tokens.
using Extra = std::variant<std::vector<std::byte>, std::string, int64_t>;

// The parent of a prompt's first block. kInvalidArgument if a name or value is not UTF-8 or exceeds
// 2^32 - 1 bytes.
Result<BlockHash> chain_root(const Namespace& fields);

// The key of the block with these tokens after `parent` (32 bytes: a root or a key).
// kInvalidArgument if the parent is not 32 bytes or a text extra is not UTF-8.
Result<BlockHash> chain_key(const BlockHash& parent, std::span<const uint32_t> tokens,
                            std::span<const Extra> extras = {});

struct ChainOptions {
  uint32_t block_size = 0;  // Tokens of a full block; at least 1.
  Namespace fields{};
  bool partial = false;  // Also the key of a shorter last block.
  // Extras of block i; may be shorter than the number of blocks.
  std::vector<std::vector<Extra>> extras{};
};

// Keys of the blocks of a prompt, in order. Incremental use: keep the last key and call
// chain_key(). kInvalidArgument for block_size 0 or as chain_root() and chain_key(). Threads: any
// thread. Cost: one SHA-256 over 4 bytes a token.
Result<std::vector<BlockHash>> chain_keys(std::span<const uint32_t> tokens,
                                          const ChainOptions& options);

}  // namespace kvkeep
