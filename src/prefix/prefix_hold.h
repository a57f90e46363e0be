// PrefixHold: what keeps the blocks of a match: leases in the cache, references in the pool.
//
// Threads: filled by one thread, then immutable.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "kvkeep/block_pool.h"
#include "kvkeep/lease.h"

namespace kvkeep {

class PrefixHold {
 public:
  explicit PrefixHold(BlockPool& pool) : pool_(pool) {}
  ~PrefixHold() { pool_.release(ids_); }
  PrefixHold(const PrefixHold&) = delete;
  PrefixHold& operator=(const PrefixHold&) = delete;

  void take(Lease lease) { leases_.push_back(std::move(lease)); }
  // References to the blocks of these keys, as far as the pool has room. Once.
  const std::vector<BlockId>& acquire(std::span<const PoolKey> keys) {
    return ids_ = pool_.acquire(keys);
  }

 private:
  BlockPool& pool_;
  std::vector<Lease> leases_;
  std::vector<BlockId> ids_;
};

}  // namespace kvkeep
