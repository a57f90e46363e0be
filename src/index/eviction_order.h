// EvictionOrder: which block leaves first.
//
// Least recently used first, and with Eviction::kLeafFirstLru no block before the blocks that
// continue it: a node with a listed child comes after every node without one. Nodes put first come
// before all others, until they are used. Among equally old ones the rank decides. Families are
// found by 64-bit fingerprints of keys, so a collision can cost a block its place, nothing more.
//
// It holds nodes that live inside its user's entries; whoever owns a node keeps it alive while it
// is listed. Any set of entries can be ordered: files and pending blocks here, images in RAM
// elsewhere.
//
// Threads: any thread. mu_ is a leaf lock, taken under a shard's lock.
// Cost:    logarithmic in the number of nodes; oldest() also in what it returns and skips.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "kvkeep/block_hash.h"
#include "kvkeep/options.h"

namespace kvkeep {

struct OrderNode;

// Where a node stands. Everything but `hash` belongs to the EvictionOrder.
struct OrderPlace {
  bool first = false;
  double used_at = 0;
  uint8_t rank = 0;
  uint64_t tick = 0;  // Of the last change of used_at: between equals the earlier goes first.

  friend bool operator<(const OrderPlace& a, const OrderPlace& b) {
    if (a.first != b.first) return a.first;
    if (a.used_at != b.used_at) return a.used_at < b.used_at;
    return a.rank != b.rank ? a.rank < b.rank : a.tick < b.tick;
  }
};

struct OlderNode {
  bool operator()(const OrderNode* a, const OrderNode* b) const;
};
using OrderedNodes = std::set<OrderNode*, OlderNode>;

// A key and those of its children that are listed.
struct OrderFamily {
  uint64_t fingerprint = 0;
  uint64_t children = 0;
  OrderNode* self = nullptr;  // Null while the key itself is not listed.
};

struct OrderNode {
  const BlockHash* hash = nullptr;
  OrderPlace place;
  OrderFamily* own = nullptr;
  OrderFamily* parent = nullptr;
  OrderedNodes::iterator at;
};

inline bool OlderNode::operator()(const OrderNode* a, const OrderNode* b) const {
  return a->place < b->place;
}

class EvictionOrder {
 public:
  explicit EvictionOrder(Eviction policy = Eviction::kLeafFirstLru) : policy_(policy) {}
  EvictionOrder(const EvictionOrder&) = delete;
  EvictionOrder& operator=(const EvictionOrder&) = delete;

  // At its place by `used_at`, after others of the same time. REQUIRES: not listed; node.hash is
  // set.
  void add(OrderNode& node, double used_at) KVKEEP_EXCLUDES(mu_);
  // Becomes the most recent, also where the clock went back. REQUIRES, as for the rest: listed.
  void touch(OrderNode& node, double now) KVKEEP_EXCLUDES(mu_);
  // Before all that were not put first; among them by last use.
  void put_first(OrderNode& node) KVKEEP_EXCLUDES(mu_);
  // The key that the node continues, listed or not. Nothing: plain order of use.
  void set_parent(OrderNode& node, const std::optional<BlockHash>& parent) KVKEEP_EXCLUDES(mu_);
  // Lower goes first among equally old ones. 0 at first.
  void set_rank(OrderNode& node, uint8_t rank) KVKEEP_EXCLUDES(mu_);
  void remove(OrderNode& node) KVKEEP_EXCLUDES(mu_);

  // True if it was put first and not used since.
  bool is_first(const OrderNode& node) const KVKEEP_EXCLUDES(mu_);
  // True if a listed block continues this one.
  bool has_children(const OrderNode& node) const KVKEEP_EXCLUDES(mu_);
  // The `count` next victims after skipping `skip` of them, in order: those without listed children
  // and then the others, so that a circle of parents does not stay for ever.
  std::vector<BlockHash> oldest(size_t count, size_t skip = 0) const KVKEEP_EXCLUDES(mu_);

 private:
  OrderedNodes& list_of(const OrderNode& node) KVKEEP_REQUIRES(mu_);
  // Needs no memory, so that nothing is ever half moved.
  using Handle = OrderedNodes::node_type;
  void link(OrderNode& node, Handle handle) KVKEEP_REQUIRES(mu_);
  Handle unlink(OrderNode& node) KVKEEP_REQUIRES(mu_);
  OrderFamily& family_of(const BlockHash& hash) KVKEEP_REQUIRES(mu_);
  void join(OrderNode& node, OrderFamily& parent) KVKEEP_REQUIRES(mu_);
  void leave_parent(OrderNode& node) KVKEEP_REQUIRES(mu_);
  void drop_if_empty(const OrderFamily& family) KVKEEP_REQUIRES(mu_);

  const Eviction policy_;
  mutable Mutex mu_;
  OrderedNodes leaves_ KVKEEP_GUARDED_BY(mu_);
  OrderedNodes inner_ KVKEEP_GUARDED_BY(mu_);
  std::unordered_map<uint64_t, OrderFamily> families_ KVKEEP_GUARDED_BY(mu_);
  uint64_t last_tick_ KVKEEP_GUARDED_BY(mu_) = 0;
};

}  // namespace kvkeep
