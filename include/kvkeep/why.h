// Why a block or a prompt would be found in a store on disk, or not; without opening a cache.
//
//   kvkeep::PromptQuestion asked;
//   asked.tokens = tokens;
//   asked.fields = {{"model", "m"}, {"build", "b7"}};
//   asked.block_size = 256;
//   std::puts(kvkeep::why_prompt("blocks", asked)->text.c_str());
//
// The reasons are those that a cache would count that opens the store now. What only a living cache
// knows is not known here: what is in its RAM, and why a block that is gone has left. Blocks are
// judged one by one; that a prefix has to end where all layers are whole (docs/prefix.md) is not.
//
// Nothing is written, and it works beside the process that owns the store.
//
// Threads:  any thread.
// Blocking: reads every byte of the blocks up to the first that a load would not take.
// Errors:   as directory.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kvkeep/block_cache.h"
#include "kvkeep/block_hash.h"
#include "kvkeep/chain_keys.h"
#include "kvkeep/directory.h"
#include "kvkeep/reason.h"
#include "kvkeep/status.h"

namespace kvkeep {

// What the cache that asks expects of blocks. What is absent is not compared.
struct ExpectedBlocks {
  ExpectedLayout layout{};
  std::optional<std::map<std::string, std::string>> identity{};  // Options::identity.
};

// A field of a namespace or an identity that is not as asked for. The value of "salt" is "salted".
struct FieldDifference {
  std::string name;
  std::optional<std::string> stored;  // Absent: has no such field.
  std::optional<std::string> asked;
};

struct BlockAnswer {
  BlockHash key;
  std::filesystem::path path{};           // Where its file is, or would be.
  std::optional<uint64_t> first_token{};  // In the prompt; absent where a key was asked about.
  uint64_t token_count = 0;
  uint64_t file_size = 0;                      // Bytes.
  std::optional<MissReason> reason{};          // Absent: a load would take it.
  std::vector<FieldDifference> differences{};  // kIdentity: as far as they are known.
  std::string text{};                          // One sentence for a person.
};
Result<BlockAnswer> why_block(const std::filesystem::path& root, const BlockHash& key,
                              const ExpectedBlocks& expected = {});

// The keys of damaged files, kept aside, that begin with these lower-case hex characters (at least
// one), sorted.
Result<std::vector<BlockHash>> find_quarantined_keys(const std::filesystem::path& root,
                                                     std::string_view hex_prefix);

struct PromptQuestion {
  std::span<const uint32_t> tokens{};
  Namespace fields{};
  uint32_t block_size = 0;  // Tokens of a full block.
  KeyRecipe recipe = KeyRecipe::kKvkeep1;
  ExpectedBlocks expected{};
  std::function<void(uint64_t blocks, uint64_t of)> progress{};  // Looked at.
};

// A namespace that the first block of the prompt is stored for.
struct OtherNamespace {
  NamespaceInfo name_space;
  std::vector<FieldDifference> differences{};
};

struct PromptAnswer {
  uint64_t tokens = 0;                 // Of the prompt that a load would bring, from the first on.
  std::vector<BlockAnswer> blocks{};   // In order; the last one is the miss, if there is one.
  uint64_t full_blocks = 0;            // That the prompt has.
  uint64_t stranded_blocks = 0;        // Stored, but behind the miss.
  std::optional<MissReason> reason{};  // Absent: all full blocks would be loaded, or a partial one.
  // Where not even the first block is there: what else is stored of these tokens.
  std::vector<OtherNamespace> elsewhere{};      // Those that differ least first. "kvkeep-1" only.
  std::optional<uint32_t> stored_block_size{};  // In this namespace.
  std::string text{};                           // One sentence for a person.
};
// kInvalidArgument: no tokens, block size 0, a field that the recipe does not have.
Result<PromptAnswer> why_prompt(const std::filesystem::path& root, const PromptQuestion& question);

// One JSON object: hash, path, state ("ok", or the reason by name), why, file_size; first_token and
// token_count where they are known; differences where there are any.
std::string to_json(const BlockAnswer& answer);
// One JSON object: state, why, tokens, full_blocks, stranded_blocks, blocks; elsewhere and
// stored_block_size where there are any.
std::string to_json(const PromptAnswer& answer);

}  // namespace kvkeep
