// PrefixCache: tokens in, longest cached prefix out.
//
//   kvkeep::BlockPool pool(64, 100'000);
//   auto prefixes = kvkeep::PrefixCache::open(pool, *cache, {.fields = {{"model", "m"}}});
//   kvkeep::PrefixMatch match = *(*prefixes)->match({tokens});   // memory only
//   kvkeep::LoadedPrefix prefix = (*prefixes)->load(match);      // reads what is on disk
//   ... compute tokens from prefix.tokens on ...
//   (*prefixes)->store({all_tokens}, state);
//
// A prompt is cut into blocks of the pool's block size. The key of a block depends on every token
// before it and on the namespace, so blocks of another model, adapter or tenant are never found
// (docs/prefix.md).
//
// Threads:   any thread.
// Ownership: pool and cache outlive the prefix cache and every match of it.
// Errors:    statuses; nothing throws.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvkeep/block_cache.h"
#include "kvkeep/block_pool.h"
#include "kvkeep/chain_keys.h"

namespace kvkeep {

// What becomes of the tokens after the last full block.
enum class PartialTails : uint8_t {
  kNone,     // They are computed again.
  kHotOnly,  // Kept in the hot tier; not written.
  kAll,      // Written as any block.
};

struct PrefixOptions {
  // What changes the state for equal tokens: model, revision, adapter, kv_dtype, … (chain_keys.h).
  Namespace fields{};
  KeyRecipe recipe = KeyRecipe::kKvkeep1;
  PartialTails partial_tails = PartialTails::kHotOnly;
  // How long the blocks of a match stay if it is neither used nor given up.
  Duration lease = std::chrono::seconds(60);
};

// What the tokens from `start` on depend on besides, such as the image behind placeholder tokens:
// blocks that end after `start` carry these extras, up to the next range.
struct ExtraRange {
  uint64_t start = 0;
  std::vector<Extra> extras;
};

struct Prompt {
  std::span<const uint32_t> tokens;
  std::string_view
      salt{};  // Of the tenant, in place of the field "salt". Empty: as the fields say.
  std::span<const ExtraRange> extras{};  // Ascending by start.
};

struct MatchedBlock {
  BlockHash key;
  uint32_t tokens = 0;
  Source source = Source::kDisk;
};

// What of a prompt is cached. The table's hold keeps its blocks until the last copy is gone or the
// lease has expired.
struct PrefixMatch {
  uint64_t tokens = 0;  // That need not be computed: never all of the prompt's.
  std::vector<MatchedBlock> blocks;
  std::vector<TokenDigest> digests;  // Of each block's tokens.
  BlockTable table;
  std::optional<MissReason> end;  // Why the block after them is not there; nothing after the last.
  std::string text;               // The same for a person.
};

struct LoadedPrefix {
  uint64_t tokens = 0;              // Covered; the last block may hold more than that.
  std::vector<LoadedBlock> blocks;  // From the first token on.
  std::optional<MissReason> end;    // Why they are fewer than matched.
};

// The state of all layers after some tokens.
struct PromptState {
  std::vector<LayerState> layers;
  std::vector<std::string> layer_types;  // Class name of each layer's cache.
  std::optional<std::vector<MetaState>> meta_states{};
  // Cuttable layers hold tokens from this one on; those before must be stored already.
  uint64_t first_token = 0;
};

// The state of the layers that cannot be cut, as it was after so many tokens: a multiple of the
// block size, or all of them. Cuttable layers may be placeholders.
struct Snapshot {
  uint64_t tokens = 0;
  std::vector<LayerState> layers;
  std::optional<std::vector<MetaState>> meta_states{};
};

struct StoreReport {
  uint64_t tokens = 0;          // Of the prompt that are stored now, from the first on.
  uint64_t stored_blocks = 0;   // Saved by this call.
  uint64_t present_blocks = 0;  // Were there.
  Status refused;               // Of the save that ended it early; ok if none did.
};

// X(name, help)
#define KVKEEP_PREFIX_COUNTERS(X)                                                       \
  X(lookups, "prompts matched")                                                         \
  X(hits, "of these, with at least one block")                                          \
  X(tokens_asked, "tokens of the prompts matched")                                      \
  X(tokens_matched, "of these, covered")                                                \
  X(tokens_loaded, "tokens of the prefixes loaded")                                     \
  X(blocks_stored, "blocks saved")                                                      \
  X(blocks_present, "blocks that a store found to be there")                            \
  X(stores_cut_short, "stores that ended early because a save was refused")             \
  X(tail_tokens_skipped, "tokens after the last full block that were not stored")       \
  X(walked_back_blocks, "blocks given up because they lack a state that cannot be cut") \
  X(superseded_blocks, "blocks whose uncuttable state was dropped for a later one")     \
  X(forgotten_blocks, "blocks that did not fit their prompt")

struct PrefixStats {
#define KVKEEP_X(name, help) uint64_t name = 0;
  KVKEEP_PREFIX_COUNTERS(KVKEEP_X)
#undef KVKEEP_X
  PoolStats pool;
};

struct PrefixState;

class PrefixCache {
 public:
  // kInvalidArgument: block size 0, a field of the namespace that the recipe does not have, a lease
  // of no time.
  static Result<std::unique_ptr<PrefixCache>> open(BlockPool& pool, TieredBlockCache& cache,
                                                   PrefixOptions options);
  // For engines that make their own keys: the calls that take keys and tables work, `cache` may be
  // null, and the others answer kFailedPrecondition.
  PrefixCache(BlockPool& pool, TieredBlockCache* cache);
  ~PrefixCache();
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  // The longest prefix that is cached, without gaps. Memory only; reads no block. Leaves at least
  // one token to be computed. kInvalidArgument: extras that the recipe cannot hold.
  Result<PrefixMatch> match(const Prompt& prompt);
  // The blocks of a match, as far as they are whole and fit together. Reads the disk. Where layers
  // cannot be cut, it ends with the last block that holds the state of all of them.
  LoadedPrefix load(const PrefixMatch& match);
  // Stores the blocks that are not there yet, in order, and ends at the first that is refused:
  // what is stored is always a prefix. Copies their bytes; does not wait for the disk but as
  // save_block() does. The first store of a namespace is noted for tools (note_namespace()).
  // kInvalidArgument: counts that disagree, layers that hold other tokens than the prompt,
  // snapshots that are not at the end of a block.
  Result<StoreReport> store(const Prompt& prompt, const PromptState& state,
                            std::span<const Snapshot> snapshots = {});
  // Brings the blocks of a match into the hot tier. How many it brought. Reads the disk.
  size_t preload(const PrefixMatch& match);
  // What a match would find and why it would end there, for a person. Counts nothing.
  Result<std::string> why(const Prompt& prompt);

  // The same by keys, for callers with their own chain: references to the blocks of the longest run
  // of `chain` that is cached, in a table of that name.
  BlockTable match(std::string_view request_id, std::span<const BlockHash> chain);
  // Brings the table's blocks into the hot tier, in its order, up to the first that is not cached
  // any more: those after it extend no prefix. Blocks without a key are passed over. How many it
  // brought; 0 without a cache. Reads the disk.
  size_t preload_blocks(const BlockTable& table);
  // The block does not fit its prompt: the pool and the cache stop knowing it; its file stays.
  void forget_incompatible(const BlockHash& hash);

  PrefixStats stats() const;

 private:
  explicit PrefixCache(std::unique_ptr<PrefixState> state);
  const std::unique_ptr<PrefixState> state_;
};

// One JSON object: every counter by name, and pool.
std::string to_json(const PrefixStats& stats);

}  // namespace kvkeep
