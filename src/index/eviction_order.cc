#include "index/eviction_order.h"

namespace kvkeep {

EvictionOrder::EvictionOrder() {
  ends_.older = &ends_;
  ends_.newer = &ends_;
}

void EvictionOrder::add(OrderNode& node) {
  MutexLock lock(mu_);
  link_newest(node);
}

void EvictionOrder::touch(OrderNode& node) {
  MutexLock lock(mu_);
  unlink(node);
  link_newest(node);
}

void EvictionOrder::remove(OrderNode& node) {
  MutexLock lock(mu_);
  unlink(node);
}

std::vector<BlockHash> EvictionOrder::oldest(size_t count, size_t skip) const {
  std::vector<BlockHash> hashes;
  MutexLock lock(mu_);
  for (const OrderNode* node = ends_.newer; node != &ends_ && hashes.size() < count;
       node = node->newer) {
    if (skip > 0) {
      --skip;
    } else {
      hashes.push_back(*node->hash);
    }
  }
  return hashes;
}

void EvictionOrder::link_newest(OrderNode& node) {
  node.newer = &ends_;
  node.older = ends_.older;
  node.older->newer = &node;
  ends_.older = &node;
}

void EvictionOrder::unlink(OrderNode& node) {
  node.older->newer = node.newer;
  node.newer->older = node.older;
}

}  // namespace kvkeep
