// TailBook: how long the partial blocks are that were stored after a block, so that a match tries
// those lengths and no others.
//
// Bounded: the latest lengths of each parent, and all is forgotten where too many parents have
// some. What is forgotten is not found again; that costs a block's worth of computing.
//
// Threads: any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "kvkeep/block_hash.h"

namespace kvkeep {

class TailBook {
 public:
  void add(const BlockHash& parent, uint32_t tokens) KVKEEP_EXCLUDES(mu_);
  // Longest first. Nothing if the parent was never heard of.
  std::optional<std::vector<uint32_t>> lengths(const BlockHash& parent) const KVKEEP_EXCLUDES(mu_);
  // The parent was heard of, and has no tails beyond those added.
  void note(const BlockHash& parent) KVKEEP_EXCLUDES(mu_);

 private:
  std::deque<uint32_t>& tails_of(const BlockHash& parent) KVKEEP_REQUIRES(mu_);

  mutable Mutex mu_;  // A leaf lock.
  std::unordered_map<BlockHash, std::deque<uint32_t>> tails_ KVKEEP_GUARDED_BY(mu_);
};

}  // namespace kvkeep
