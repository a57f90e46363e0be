// HotBudget: one RAM limit and one order of last use for the hot tiers of several caches.
//
//   options_a.budget = options_b.budget = kvkeep::HotBudget::create(4ll << 30);
//
// Bytes are those that images really occupy, pool rounding included.
//
// Threads:   any thread. Owners are called without a lock held.
// Ownership: owners are held weakly; what an owner held vanishes with it.
// Blocking:  put(), shrink_to() and clear_all_owners() ask owners to let blocks go, which costs
// what
//            the owner needs for it (HotOwner).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_set>
#include <vector>

#include "kvkeep/block_hash.h"
#include "kvkeep/environment.h"
#include "kvkeep/status.h"

namespace kvkeep {

using HashSet = std::unordered_set<BlockHash>;

// Who may wait for room in a write queue: savers; loads never.
enum class Patience : uint8_t { kNone, kQueueWait };

// What holds blocks on account of a budget: the hot tier of a cache.
//
// Threads: any thread.
class HotOwner {
 public:
  virtual ~HotOwner() = default;
  // Lets the block of this generation go, handing it to the disk first if it has no file. True if
  // it is gone, also if it was gone before; false if it has to stay for now.
  virtual bool give_up(const BlockHash& hash, uint64_t generation, Patience patience) = 0;
  // Lets everything go. How many blocks that were.
  virtual Result<size_t> clear() = 0;
};
using HotOwnerRef = std::weak_ptr<HotOwner>;

class HotBudget {
 public:
  // A negative limit counts as 0. `logger`: where an owner's failure is reported; default stderr.
  static std::shared_ptr<HotBudget> create(int64_t max_bytes,
                                           std::shared_ptr<Logger> logger = nullptr);
  ~HotBudget();

  uint64_t max_bytes() const;
  uint64_t total_bytes() const;
  uint64_t remaining_bytes() const;  // max - total, never below 0.
  // Holds from the next put() on.
  void set_max_bytes(int64_t max_bytes);

  // Gives up least recently used blocks of any owner until everything else held is at most `bytes`;
  // those in `keep` stay. How many bytes have gone.
  uint64_t shrink_to(int64_t bytes, const HashSet& keep = {});
  // Clears every owner that holds something, each once. How many blocks have gone.
  size_t clear_all_owners();

  // The rest is for owners.

  struct PutReport {
    bool stored = false;             // False: too little could be given up; nothing is charged.
    std::vector<BlockHash> victims;  // Blocks that left for it, in that order.
  };
  // Charges a block, most recent, in place of an earlier generation of it, after making room.
  // Room is made before the bytes are charged. A block larger than the limit is charged once it is
  // alone; caches do not ask for that.
  PutReport put(const HotOwnerRef& owner, const BlockHash& hash, uint64_t bytes,
                uint64_t generation, Patience patience = Patience::kQueueWait);
  // Makes the block the most recent, if it is held.
  void touch(const HotOwnerRef& owner, const BlockHash& hash);
  // The block of this generation is gone.
  void forget(const HotOwnerRef& owner, const BlockHash& hash, uint64_t generation);
  void forget_owner(const HotOwnerRef& owner);
  // As shrink_to(), of one owner's share.
  uint64_t shrink_owner(const HotOwnerRef& owner, int64_t bytes, const HashSet& keep = {});

  struct Share {
    uint64_t blocks = 0;
    uint64_t bytes = 0;
  };
  Share share_of(const HotOwnerRef& owner) const;
  // Least recently used first.
  std::vector<BlockHash> blocks_of(const HotOwnerRef& owner) const;

 private:
  explicit HotBudget(int64_t max_bytes, std::shared_ptr<Logger> logger);
  struct Ledger;
  const std::unique_ptr<Ledger> ledger_;
};

}  // namespace kvkeep
