// EvictionOrder: which block leaves first. Least recently used.
//
// It holds nodes that live inside index entries; whoever owns a node keeps it alive while it is
// listed.
//
// Threads: any thread. mu_ is a leaf lock, taken under a shard's lock.
#pragma once

#include <cstddef>
#include <vector>

#include "base/mutex.h"
#include "kvkeep/block_hash.h"

namespace kvkeep {

struct OrderNode {
  OrderNode* older = nullptr;
  OrderNode* newer = nullptr;
  const BlockHash* hash = nullptr;
};

class EvictionOrder {
 public:
  EvictionOrder();
  EvictionOrder(const EvictionOrder&) = delete;
  EvictionOrder& operator=(const EvictionOrder&) = delete;

  // As the most recent. REQUIRES: not listed; node.hash is set.
  void add(OrderNode& node) KVKEEP_EXCLUDES(mu_);
  // Becomes the most recent. REQUIRES: listed.
  void touch(OrderNode& node) KVKEEP_EXCLUDES(mu_);
  void remove(OrderNode& node) KVKEEP_EXCLUDES(mu_);

  // The `count` oldest after skipping `skip` of them, oldest first.
  std::vector<BlockHash> oldest(size_t count, size_t skip = 0) const KVKEEP_EXCLUDES(mu_);

 private:
  void link_newest(OrderNode& node) KVKEEP_REQUIRES(mu_);
  static void unlink(OrderNode& node);

  mutable Mutex mu_;
  OrderNode ends_ KVKEEP_GUARDED_BY(mu_);  // ends_.newer is the oldest, ends_.older the newest.
};

}  // namespace kvkeep
