// HotTier: the images that one cache keeps in RAM, on account of its budget.
//
// A block enters it dirty, when it is saved with write-back, or clean, when it was read from disk.
// Dirty ones go to the write queue when they are due (DirtyBlocks), when they have to leave, and at
// flush and close. The bytes are charged before the image is published, and given back after it is
// taken out, so the budget is never below what is really held.
//
// Threads: any thread. No lock is held while the budget or another owner is called.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "index/block_index.h"
#include "index/expectation.h"
#include "kvkeep/block_cache.h"
#include "kvkeep/hot_budget.h"
#include "tier/dirty_blocks.h"
#include "tier/write_queue.h"

namespace kvkeep {

struct CacheState;

class HotTier final : public HotOwner {
 public:
  // The state owns the tier.
  explicit HotTier(CacheState& state) : state_(state) {}

  // Takes the budget of the options, or one of its own. `self` keeps the state alive while it is
  // held. Call once, before anything else.
  void join(HotOwnerRef self);

  uint64_t max_bytes() const { return budget_->max_bytes(); }
  bool enabled() const { return max_bytes() > 0; }
  uint64_t remaining_bytes() const { return budget_->remaining_bytes(); }
  HotBudget::Share share() const { return budget_->share_of(self_); }
  size_t dirty_blocks() const { return dirty_.size(); }
  void set_max_bytes(uint64_t bytes);

  enum class Kept : uint8_t { kYes, kPresent, kNoRoom, kMisfit };
  // Keeps a block that is being saved. kPresent: somebody else was faster. kMisfit: the block does
  // not fit what the cache expects by now; `seen` is what it was checked against.
  Kept keep_new(const BlockHash& hash, const ImagePtr& image, const LayoutPtr& layout,
                const Expectation& seen, Residency residency);
  // A block of which only a clean copy in RAM is left shall have a file: because a save allows it
  // now, or because blocks that continue it get one (then those that it continues, too).
  void want_file(const BlockHash& hash);
  void want_files_up_from(std::optional<BlockHash> hash);
  // Keeps a block that was read as `file_generation`, unless it has left or changed since. Waits
  // for nothing; without room it is not kept.
  bool promote(const BlockHash& hash, const ImagePtr& image, uint64_t file_generation);
  void touch(const BlockHash& hash) { budget_->touch(self_, hash); }

  // The block's hot part was taken out of its entry. Call without the entry's lock.
  void forget(const BlockHash& hash, const HotBlock& gone);
  // The block's file now holds what is hot. REQUIRES: the entry is locked.
  void mark_clean(HotBlock& hot);
  // Writing it failed: it stays dirty, and is tried again later.
  void write_failed(const HotBlock& hot);

  // A block that is only in RAM goes to the write queue and leaves; any other is left alone. False
  // if the queue stayed full.
  bool write_now(const BlockHash& hash);
  // Dirty blocks to the write queue, heads of chains first. `only_due`: those old enough, without
  // waiting; else all of them, waiting for room until `deadline`. False if the queue stayed full.
  bool write_dirty(bool only_due, std::optional<Duration> deadline = {});
  // Dirty blocks now, oldest first.
  std::vector<BlockHash> dirty() const { return dirty_.all(); }

  // HotOwner.
  bool give_up(const BlockHash& hash, uint64_t generation, Patience patience) override;
  Result<size_t> clear() override { return clear(HotClear::kDiscard); }

  size_t clear(HotClear how);
  uint64_t shrink_to(uint64_t bytes, const HashSet& keep);
  // The cache has closed: nothing is kept any more.
  void leave();

 private:
  enum class Found : uint8_t { kGone, kClean, kDirty, kBeingWritten };
  struct Looked {
    Found found = Found::kGone;
    uint64_t generation = 0;
    ImagePtr image;
    bool has_children = false;  // A block that continues it is known.
    bool last_copy = false;     // And no file shall be written.
    bool ram_only = false;
    bool stays = false;  // Leased, or a block that continues it is being saved.
  };
  // What becomes of the hot image when the block goes to the write queue.
  enum class Move : uint8_t { kStays, kLeaves };

  class Stay;
  Looked look(const BlockHash& hash);
  void count_eviction(const BlockHash& hash, const Image& image);
  void give_up_a_leaf();
  bool drop(const BlockHash& hash, uint64_t generation);
  bool spill(const BlockHash& hash, const Looked& looked, Patience patience);
  // The write's ticket and bytes are taken; puts it on its way. False if the block changed since.
  bool hand_over(const BlockHash& hash, const Looked& looked, QueuedWrite write, Move move);
  bool write_one(const DirtyBlocks::Item& item, bool only_due, std::optional<Duration> deadline);
  bool can_be_written(const BlockHash& hash, const Looked& looked);
  std::vector<DirtyBlocks::Item> heads_first(std::vector<DirtyBlocks::Item> items);
  void add_dirty(const BlockHash& hash, uint64_t generation);
  void arm();
  void run_due();

  CacheState& state_;
  std::shared_ptr<HotBudget> budget_;
  HotOwnerRef self_;
  bool own_budget_ = false;
  DirtyBlocks dirty_;
  std::atomic<uint64_t> last_generation_ = 0;
  std::atomic<bool> armed_ = false;
};

}  // namespace kvkeep
