#include "ram/hot_ledger.h"

namespace kvkeep {

uint64_t HotLedger::charge_of(const HotOwnerRef& owner, const BlockHash& hash) const {
  const auto held = owners_.find(owner);
  if (held == owners_.end()) return 0;
  const auto block = held->second.blocks.find(hash);
  return block == held->second.blocks.end() ? 0 : block->second->bytes;
}

void HotLedger::insert(Item item) {
  Held& held = owners_[item.owner];
  if (const auto old = held.blocks.find(item.hash); old != held.blocks.end()) {
    const auto at = old->second;
    held.bytes += item.bytes - at->bytes;
    total_ += item.bytes - at->bytes;
    *at = std::move(item);
    items_.splice(items_.end(), items_, at);
    return;
  }
  // What needs memory first, so that nothing is ever half listed.
  std::list<Item> fresh;
  fresh.push_back(std::move(item));
  held.blocks.emplace(fresh.front().hash, fresh.begin());
  held.bytes += fresh.front().bytes;
  total_ += fresh.front().bytes;
  items_.splice(items_.end(), fresh);
}

void HotLedger::touch(const HotOwnerRef& owner, const BlockHash& hash) {
  const auto held = owners_.find(owner);
  if (held == owners_.end()) return;
  const auto block = held->second.blocks.find(hash);
  if (block != held->second.blocks.end()) items_.splice(items_.end(), items_, block->second);
}

bool HotLedger::erase(const HotOwnerRef& owner, const BlockHash& hash, uint64_t generation) {
  const auto held = owners_.find(owner);
  if (held == owners_.end()) return false;
  const auto block = held->second.blocks.find(hash);
  if (block == held->second.blocks.end() || block->second->generation != generation) return false;
  held->second.bytes -= block->second->bytes;
  total_ -= block->second->bytes;
  items_.erase(block->second);
  held->second.blocks.erase(block);
  if (held->second.blocks.empty()) owners_.erase(held);
  return true;
}

void HotLedger::erase_owner(const HotOwnerRef& owner) {
  if (const auto held = owners_.find(owner); held != owners_.end()) erase(held);
}

void HotLedger::erase_expired() {
  for (auto owner = owners_.begin(); owner != owners_.end();) {
    const auto next = std::next(owner);
    if (owner->first.expired()) erase(owner);
    owner = next;
  }
}

void HotLedger::erase(Owners::iterator owner) {
  for (const auto& [hash, item] : owner->second.blocks) items_.erase(item);
  total_ -= owner->second.bytes;
  owners_.erase(owner);
}

HotLedger::Share HotLedger::share_of(const HotOwnerRef& owner) const {
  const auto held = owners_.find(owner);
  if (held == owners_.end()) return {};
  return {held->second.blocks.size(), held->second.bytes};
}

std::vector<HotOwnerRef> HotLedger::owners() const {
  std::vector<HotOwnerRef> owners;
  for (const auto& [owner, held] : owners_) owners.push_back(owner);
  return owners;
}

std::vector<HotLedger::Item> HotLedger::items_of(const HotOwnerRef& owner) const {
  std::vector<Item> found;
  for (const Item& item : items_) {
    if (same(item.owner, owner)) found.push_back(item);
  }
  return found;
}

}  // namespace kvkeep
