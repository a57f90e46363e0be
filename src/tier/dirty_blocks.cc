#include "tier/dirty_blocks.h"

#include <algorithm>

namespace kvkeep {

void DirtyBlocks::add(uint64_t generation, Item item) {
  MutexLock lock(mu_);
  items_.insert_or_assign(generation, std::move(item));
}

void DirtyBlocks::remove(uint64_t generation) {
  MutexLock lock(mu_);
  items_.erase(generation);
}

void DirtyBlocks::postpone(uint64_t generation, Duration due) {
  MutexLock lock(mu_);
  if (const auto item = items_.find(generation); item != items_.end()) item->second.due = due;
}

std::vector<DirtyBlocks::Item> DirtyBlocks::due(std::optional<Duration> now) const {
  std::vector<Item> due;
  MutexLock lock(mu_);
  for (const auto& [generation, item] : items_) {
    if (!now || item.due <= *now) due.push_back(item);
  }
  return due;
}

std::vector<BlockHash> DirtyBlocks::all() const {
  std::vector<BlockHash> hashes;
  MutexLock lock(mu_);
  for (const auto& [generation, item] : items_) hashes.push_back(item.hash);
  return hashes;
}

std::optional<Duration> DirtyBlocks::next_due() const {
  MutexLock lock(mu_);
  std::optional<Duration> next;
  for (const auto& [generation, item] : items_) next = std::min(next.value_or(item.due), item.due);
  return next;
}

size_t DirtyBlocks::size() const {
  MutexLock lock(mu_);
  return items_.size();
}

}  // namespace kvkeep
