// HotLedger: the list behind a HotBudget. Who holds which block, how large, in the order of last
// use.
//
// Threads: the caller's lock.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "kvkeep/hot_budget.h"

namespace kvkeep {

class HotLedger {
 public:
  struct Item {
    HotOwnerRef owner;
    BlockHash hash;
    uint64_t bytes = 0;
    uint64_t generation = 0;
  };
  using Share = HotBudget::Share;
  // Which items may be looked at: of one owner, or of all if absent.
  using Scope = std::optional<HotOwnerRef>;

  uint64_t total() const { return total_; }
  // What the block is charged now; 0 if it is not listed.
  uint64_t charge_of(const HotOwnerRef& owner, const BlockHash& hash) const;
  // As the most recent, in place of an older generation.
  void insert(Item item);
  void touch(const HotOwnerRef& owner, const BlockHash& hash);
  // False if that generation is not listed.
  bool erase(const HotOwnerRef& owner, const BlockHash& hash, uint64_t generation);
  void erase_owner(const HotOwnerRef& owner);
  // Owners that ended without saying so.
  void erase_expired();

  Share share_of(const HotOwnerRef& owner) const;
  std::vector<HotOwnerRef> owners() const;
  // Oldest first.
  std::vector<Item> items_of(const HotOwnerRef& owner) const;
  // The oldest item in scope after skipping what `skip` says yes to.
  template <typename Skip>
  std::optional<Item> oldest(const Scope& scope, Skip&& skip) const {
    for (const Item& item : items_) {
      if (scope && !same(*scope, item.owner)) continue;
      if (!skip(item)) return item;
    }
    return std::nullopt;
  }

  static bool same(const HotOwnerRef& a, const HotOwnerRef& b) {
    return !a.owner_before(b) && !b.owner_before(a);
  }

 private:
  using Items = std::list<Item>;  // Oldest first.
  struct Held {
    std::unordered_map<BlockHash, Items::iterator> blocks;
    uint64_t bytes = 0;
  };
  using Owners = std::map<HotOwnerRef, Held, std::owner_less<HotOwnerRef>>;

  void erase(Owners::iterator owner);

  Items items_;
  Owners owners_;
  uint64_t total_ = 0;
};

}  // namespace kvkeep
