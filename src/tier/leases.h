// Leases: which blocks stay because somebody is about to use them (include/kvkeep/lease.h).
//
// The mark of a leased block is in its entry, where eviction looks; LeaseBook knows who holds what,
// for messages.
//
// Threads: any thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/mutex.h"
#include "index/block_index.h"
#include "kvkeep/block_hash.h"
#include "kvkeep/environment.h"
#include "kvkeep/lease.h"
#include "kvkeep/status.h"

namespace kvkeep {

struct CacheState;
class BlockHold;

class LeaseBook {
 public:
  void add(const BlockHold& hold) KVKEEP_EXCLUDES(mu_);
  void remove(const BlockHold& hold) KVKEEP_EXCLUDES(mu_);
  // Who holds the block; empty if nobody does any more. Looks through every lease.
  std::string owner_of(const BlockHash& hash) const KVKEEP_EXCLUDES(mu_);

 private:
  mutable Mutex mu_;  // A leaf lock.
  std::unordered_set<const BlockHold*> holds_ KVKEEP_GUARDED_BY(mu_);
};

// TieredBlockCache::lease(), while the cache is open. The end's reason is left to the caller.
Result<Lease> lease_blocks(const std::shared_ptr<CacheState>& state,
                           std::span<const BlockHash> keys, Duration ttl, std::string_view owner);

// Keeps a block from eviction while one that continues it is saved, so that room for a child is not
// made at its parent's cost.
class SparedParent {
 public:
  // Nothing is spared if there is no such block.
  SparedParent(BlockIndex& index, const std::optional<BlockHash>& parent);
  ~SparedParent();
  SparedParent(const SparedParent&) = delete;
  SparedParent& operator=(const SparedParent&) = delete;

 private:
  BlockIndex& index_;
  const std::optional<BlockHash> parent_;
  uint64_t tenure_ = 0;  // 0: nothing is spared.
};

// kFailedPrecondition, naming who holds the block.
Status leased_status(const CacheState& state, const BlockHash& hash);

}  // namespace kvkeep
