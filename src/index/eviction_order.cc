#include "index/eviction_order.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace kvkeep {
namespace {

double newest_in(const OrderedNodes& nodes, double otherwise) {
  return nodes.empty() ? otherwise : std::max(otherwise, (*nodes.rbegin())->place.used_at);
}

}  // namespace

void EvictionOrder::add(OrderNode& node, double used_at) {
  MutexLock lock(mu_);
  node.place = {false, used_at, 0, ++last_tick_};
  OrderedNodes fresh;
  Handle handle = fresh.extract(fresh.insert(&node).first);
  if (policy_ == Eviction::kLeafFirstLru) {
    OrderFamily& family = family_of(*node.hash);
    const bool taken = family.self != nullptr;  // By another key with the same fingerprint.
    if (!taken) family.self = &node;
    node.own = taken ? nullptr : &family;
  }
  link(node, std::move(handle));
}

void EvictionOrder::touch(OrderNode& node, double now) {
  MutexLock lock(mu_);
  Handle handle = unlink(node);
  node.place.first = false;
  node.place.used_at = newest_in(inner_, newest_in(leaves_, now));
  node.place.tick = ++last_tick_;
  link(node, std::move(handle));
}

void EvictionOrder::put_first(OrderNode& node) {
  MutexLock lock(mu_);
  Handle handle = unlink(node);
  node.place.first = true;
  link(node, std::move(handle));
}

void EvictionOrder::set_parent(OrderNode& node, const std::optional<BlockHash>& parent) {
  if (policy_ != Eviction::kLeafFirstLru) return;
  MutexLock lock(mu_);
  leave_parent(node);
  if (!parent || *parent == *node.hash) return;
  join(node, family_of(*parent));
}

void EvictionOrder::set_rank(OrderNode& node, uint8_t rank) {
  MutexLock lock(mu_);
  if (node.place.rank == rank) return;
  Handle handle = unlink(node);
  node.place.rank = rank;
  link(node, std::move(handle));
}

void EvictionOrder::remove(OrderNode& node) {
  MutexLock lock(mu_);
  unlink(node);
  leave_parent(node);
  if (node.own == nullptr) return;
  node.own->self = nullptr;
  drop_if_empty(*node.own);
  node.own = nullptr;
}

bool EvictionOrder::is_first(const OrderNode& node) const {
  MutexLock lock(mu_);
  return node.place.first;
}

bool EvictionOrder::has_children(const OrderNode& node) const {
  MutexLock lock(mu_);
  return node.own != nullptr && node.own->children > 0;
}

std::vector<BlockHash> EvictionOrder::oldest(size_t count, size_t skip) const {
  std::vector<BlockHash> hashes;
  MutexLock lock(mu_);
  for (const OrderedNodes* nodes : {&leaves_, &inner_}) {
    if (skip >= nodes->size()) {
      skip -= nodes->size();
      continue;
    }
    auto it = std::next(nodes->begin(), static_cast<std::ptrdiff_t>(std::exchange(skip, 0)));
    for (; it != nodes->end() && hashes.size() < count; ++it) hashes.push_back(*(*it)->hash);
  }
  return hashes;
}

OrderedNodes& EvictionOrder::list_of(const OrderNode& node) {
  return node.own != nullptr && node.own->children > 0 ? inner_ : leaves_;
}

// Most nodes that are linked are the newest.
void EvictionOrder::link(OrderNode& node, Handle handle) {
  OrderedNodes& nodes = list_of(node);
  node.at = nodes.insert(nodes.end(), std::move(handle));
}

EvictionOrder::Handle EvictionOrder::unlink(OrderNode& node) {
  return list_of(node).extract(node.at);
}

OrderFamily& EvictionOrder::family_of(const BlockHash& hash) {
  const uint64_t fingerprint = hash.hash_value();
  OrderFamily& family = families_[fingerprint];
  family.fingerprint = fingerprint;
  return family;
}

void EvictionOrder::join(OrderNode& node, OrderFamily& parent) {
  if (&parent == node.own) return;
  node.parent = &parent;
  OrderNode* self = parent.children == 0 ? parent.self : nullptr;
  Handle handle = self != nullptr ? unlink(*self) : Handle();
  ++parent.children;
  if (self != nullptr) link(*self, std::move(handle));
}

void EvictionOrder::leave_parent(OrderNode& node) {
  if (node.parent == nullptr) return;
  OrderFamily& parent = *std::exchange(node.parent, nullptr);
  OrderNode* self = parent.children == 1 ? parent.self : nullptr;
  Handle handle = self != nullptr ? unlink(*self) : Handle();
  --parent.children;
  if (self != nullptr) link(*self, std::move(handle));
  drop_if_empty(parent);
}

void EvictionOrder::drop_if_empty(const OrderFamily& family) {
  if (family.children == 0 && family.self == nullptr) families_.erase(family.fingerprint);
}

}  // namespace kvkeep
