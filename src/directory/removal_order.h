// The order in which blocks leave a store: least recently used first, but no parent before its
// children (RUL-27, RUL-60).
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "kvkeep/block_hash.h"

namespace kvkeep {

struct RemovalCandidate {
  BlockHash hash;
  std::optional<BlockHash> parent;
  double last_access = 0;  // Seconds.
  uint64_t allocated = 0;  // Bytes.
};

class RemovalOrder {
 public:
  // A block counts as used when its most recently used descendant was. Where parents form a cycle,
  // one of the links is taken as absent.
  explicit RemovalOrder(std::vector<RemovalCandidate> blocks);

  const std::vector<RemovalCandidate>& blocks() const { return blocks_; }

  // Positions in blocks(), in order, of what goes: each block that `wanted` names, but none with a
  // child that stays. `wanted` is told the bytes chosen before.
  std::vector<size_t> choose(
      const std::function<bool(const RemovalCandidate&, uint64_t bytes)>& wanted) const;
  // Positions, in order, of the blocks that `wanted` names and all their descendants.
  std::vector<size_t> with_descendants(
      const std::function<bool(const RemovalCandidate&)>& wanted) const;

 private:
  std::vector<RemovalCandidate> blocks_;
  std::vector<std::optional<size_t>> parent_;  // Position of each block's parent, if it is here.
  std::vector<size_t> order_;                  // Children before parents.
};

}  // namespace kvkeep
