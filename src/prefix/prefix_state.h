// What the calls of a PrefixCache share. One file per call: prefix_match.cc, prefix_load.cc,
// prefix_store.cc.
//
// Threads: any thread.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "kvkeep/prefix_cache.h"
#include "prefix/lineage.h"
#include "prefix/prompt_keys.h"
#include "prefix/tail_book.h"

namespace kvkeep {

struct PrefixState {
  using Counter = uint64_t PrefixStats::*;

  PrefixState(BlockPool& p, TieredBlockCache* c, std::optional<PromptKeys> k, PrefixOptions o)
      : pool(p), cache(c), keys(std::move(k)), options(std::move(o)) {}

  BlockPool& pool;
  TieredBlockCache* const cache;         // May be null only where there are no keys.
  const std::optional<PromptKeys> keys;  // Absent: callers bring their own.
  const PrefixOptions options;
  TailBook tails;
  Lineage lineage;

  mutable Mutex mu;  // A leaf lock.
  HashSet noted_roots KVKEEP_GUARDED_BY(mu);
  PrefixStats counters KVKEEP_GUARDED_BY(mu);

  void count(std::initializer_list<std::pair<Counter, uint64_t>> changes) {
    MutexLock lock(mu);
    for (const auto& [counter, by] : changes) counters.*counter += by;
  }
  Status takes_tokens() const {
    if (keys) return {};
    return Status(Code::kFailedPrecondition, "this prefix cache was made for callers' own keys");
  }
  // The hot tier that kHotOnly needs is there, or none is needed.
  bool keeps_tails() const;
  // A layer is known that cannot be cut, so that an end within a block is of no use.
  bool ends_at_blocks() const;
  void forget(const BlockHash& hash);
  // Lets the cache know of the namespace, once.
  void note_namespace(const KeyChain& chain, const Prompt& prompt) KVKEEP_EXCLUDES(mu);

  Result<PrefixMatch> find(const Prompt& prompt) KVKEEP_EXCLUDES(mu);
  LoadedPrefix load(const PrefixMatch& match);
  Result<StoreReport> store(const Prompt& prompt, const PromptState& state,
                            std::span<const Snapshot> snapshots);
};

// Which block the partial blocks after `parent`, or after nothing, are listed under.
BlockHash tail_parent(const KeyChain& chain, const std::optional<BlockHash>& parent);

std::vector<BlockHash> keys_of(const PrefixMatch& match);

// True if a prefix may end with this block: it holds the whole state of every layer.
bool holds_whole_state(const LoadedBlock& block);

// The class name of layer `i`'s cache, as far as the block tells.
std::string_view type_of_layer(const LoadedBlock& block, size_t i);

}  // namespace kvkeep
