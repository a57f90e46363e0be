#include "tier/hot_tier.h"

#include <algorithm>

#include "base/bytes.h"
#include "kvkeep/size_string.h"
#include "tier/cache_state.h"
#include "tier/compatibility.h"
#include "tier/write_promise.h"

namespace kvkeep {
namespace {

constexpr Duration kRetryWriteAfter = std::chrono::seconds(60);
// A dirty block this many times as old as flush_after is written before new blocks (RUL-33).
constexpr int kUrgentAge = 10;
constexpr size_t kLeavesTried = 16;

}  // namespace

void HotTier::join(HotOwnerRef self) {
  self_ = std::move(self);
  budget_ = state_.options.budget;
  own_budget_ = budget_ == nullptr;
  if (own_budget_) budget_ = HotBudget::create(0, state_.environment.logger);
  if (own_budget_) set_max_bytes(state_.options.hot_max_bytes);
}

void HotTier::set_max_bytes(uint64_t bytes) {
  if (own_budget_)
    budget_->set_max_bytes(static_cast<int64_t>(std::min<uint64_t>(bytes, INT64_MAX)));
}

// A block that is charged for and not yet in the index: forgotten again unless it is kept.
class HotTier::Stay {
 public:
  Stay(HotTier& tier, const BlockHash& hash, const HotBlock& hot)
      : tier_(tier), hash_(hash), hot_(hot) {}
  ~Stay() {
    if (!kept_) tier_.forget(hash_, hot_);
  }
  Stay(const Stay&) = delete;
  Stay& operator=(const Stay&) = delete;

  void keep() { kept_ = true; }

 private:
  HotTier& tier_;
  const BlockHash& hash_;
  const HotBlock& hot_;
  bool kept_ = false;
};

HotTier::Kept HotTier::keep_new(const BlockHash& hash, const ImagePtr& image,
                                const LayoutPtr& layout, const Expectation& seen,
                                Residency residency) {
  const uint64_t generation = ++last_generation_;
  if (image->ram_bytes() > max_bytes()) return Kept::kNoRoom;
  const double now = state_.clock().wall();
  const bool dirty = !state_.options.hot_only && residency == Residency::kAny;
  const bool ram_only = residency == Residency::kHotOnly;
  auto hot = std::make_unique<HotBlock>(HotBlock{generation, dirty, ram_only, image, layout});
  const auto put = budget_->put(self_, hash, image->ram_bytes(), generation, Patience::kQueueWait);
  if (!put.stored) return Kept::kNoRoom;
  Stay stay(*this, hash, *hot);
  if (dirty) add_dirty(hash, generation);
  Kept kept = Kept::kMisfit;
  {
    LockedEntry locked(state_.index, hash);
    if (still_fits(state_, *layout, seen)) {
      Entry& entry = locked.get_or_add(now);
      locked.touch(now);
      if (!entry.servable()) {
        locked.set_parent(image->header().info.parent);
        entry.hot = std::move(hot);
        stay.keep();
        state_.departed.forget(hash);
        return Kept::kYes;
      }
      kept = Kept::kPresent;
    }
  }
  return kept;
}

// Listed first: whoever finds it dirty may take it from the list.
void HotTier::want_file(const BlockHash& hash) {
  const Looked looked = look(hash);
  if (!looked.last_copy) return;
  add_dirty(hash, looked.generation);
  LockedEntry locked(state_.index, hash);
  Entry* entry = locked.get();
  const bool same = entry != nullptr && entry->hot != nullptr && !entry->hot->dirty &&
                    entry->hot->generation == looked.generation;
  if (same) {
    entry->hot->dirty = true;
    entry->hot->ram_only = false;
  } else {
    dirty_.remove(looked.generation);
  }
}

// Its file was evicted while the copy in RAM was still in use. On disk it would be missed.
void HotTier::want_files_up_from(std::optional<BlockHash> hash) {
  while (hash) {
    const Looked looked = look(*hash);
    if (!looked.last_copy || looked.ram_only) return;
    want_file(*hash);
    hash = looked.image->header().info.parent;
  }
}

bool HotTier::promote(const BlockHash& hash, const ImagePtr& image, uint64_t file_generation) {
  const uint64_t generation = ++last_generation_;
  if (image->ram_bytes() > max_bytes()) return false;
  auto hot = std::make_unique<HotBlock>(HotBlock{generation, false, false, image, {}});
  const auto put = budget_->put(self_, hash, image->ram_bytes(), generation, Patience::kNone);
  if (!put.stored) return false;
  bool same = false;
  {
    LockedEntry locked(state_.index, hash);
    Entry* entry = locked.get();
    same = entry != nullptr && entry->file.state == FileState::kDurable &&
           entry->file.generation == file_generation && entry->pending == nullptr &&
           entry->hot == nullptr;
    if (same) {
      hot->layout = entry->file.layout;
      entry->hot = std::move(hot);
    }
  }
  if (!same) {
    budget_->forget(self_, hash, generation);
    return false;
  }
  state_.stats.add(&CacheStats::hot_cache_promotions);
  state_.emit(EventKind::kPromoted, &hash, image->ram_bytes());
  return true;
}

void HotTier::forget(const BlockHash& hash, const HotBlock& gone) {
  if (gone.dirty) dirty_.remove(gone.generation);
  budget_->forget(self_, hash, gone.generation);
}

void HotTier::mark_clean(HotBlock& hot) {
  if (hot.dirty) dirty_.remove(hot.generation);
  hot.dirty = false;
}

void HotTier::write_failed(const HotBlock& hot) {
  dirty_.postpone(hot.generation, state_.clock().mono() + kRetryWriteAfter);
}

HotTier::Looked HotTier::look(const BlockHash& hash) {
  LockedEntry locked(state_.index, hash);
  const Entry* entry = locked.get();
  if (entry == nullptr || entry->hot == nullptr) return {};
  const HotBlock& hot = *entry->hot;
  Looked looked{hot.dirty ? Found::kDirty : Found::kClean, hot.generation, hot.image,
                state_.index.order().has_children(entry->order)};
  if (entry->pending != nullptr) looked.found = Found::kBeingWritten;
  looked.last_copy = looked.found == Found::kClean && entry->file.state != FileState::kDurable;
  looked.ram_only = hot.ram_only;
  looked.stays = entry->stays(state_.clock().mono());
  return looked;
}

// A block that is just being written stays: its image would be charged to nobody. So does, where
// RAM is the last tier, one that is leased or that others continue: the end of some chain leaves
// for it.
bool HotTier::give_up(const BlockHash& hash, uint64_t generation, Patience patience) {
  const Looked looked = look(hash);
  if (looked.found == Found::kGone || looked.generation != generation) return true;
  if (looked.found == Found::kBeingWritten) return false;
  if (looked.last_copy && (looked.stays || looked.has_children)) {
    if (state_.options.hot_only && !looked.stays) give_up_a_leaf();
    return look(hash).generation != generation;
  }
  const bool left =
      looked.found == Found::kClean ? drop(hash, generation) : spill(hash, looked, patience);
  if (left) count_eviction(hash, *looked.image);
  return left;
}

void HotTier::give_up_a_leaf() {
  for (const BlockHash& hash : state_.index.order().oldest(kLeavesTried)) {
    const Looked looked = look(hash);
    if (looked.found != Found::kClean || looked.stays) continue;
    drop(hash, looked.generation);
    return count_eviction(hash, *looked.image);
  }
}

void HotTier::count_eviction(const BlockHash& hash, const Image& image) {
  state_.stats.add(&CacheStats::hot_cache_evictions);
  state_.emit(EventKind::kHotEvicted, &hash, image.ram_bytes());
}

bool HotTier::write_now(const BlockHash& hash) {
  const Looked looked = look(hash);
  return looked.found != Found::kDirty || spill(hash, looked, Patience::kQueueWait) ||
         look(hash).found != Found::kDirty;
}

bool HotTier::drop(const BlockHash& hash, uint64_t generation) {
  std::unique_ptr<HotBlock> dropped;
  bool lost = false;
  {
    LockedEntry locked(state_.index, hash);
    Entry* entry = locked.get();
    if (entry == nullptr || entry->hot == nullptr || entry->hot->generation != generation)
      return true;
    dropped = std::move(entry->hot);
    lost = !entry->servable();
    locked.erase_if_empty();
  }
  forget(hash, *dropped);
  if (lost) state_.departed.remember(hash, MissReason::kEvicted);
  if (lost && (dropped->dirty || state_.options.hot_only))
    state_.stats.add(&CacheStats::ssd_write_drops);
  return true;
}

bool HotTier::spill(const BlockHash& hash, const Looked& looked, Patience patience) {
  if (!can_be_written(hash, looked)) return !looked.stays && drop(hash, looked.generation);
  const Duration wait =
      patience == Patience::kQueueWait ? state_.options.queue_wait : Duration::zero();
  const auto ticket =
      state_.queue.take_ticket(looked.image->ram_bytes(), wait, WriteQueue::Entrance::kSaver);
  return ticket && hand_over(hash, looked, {hash, *ticket, {}}, Move::kLeaves);
}

bool HotTier::can_be_written(const BlockHash& hash, const Looked& looked) {
  const uint64_t charge = round_up(looked.image->file_bytes(), state_.directory->block_bytes());
  if (charge <= state_.account->largest_block()) return true;
  state_.stats.add_refusal(Refusal::kTooLarge);
  state_.log(LogLevel::kError, "block " + hash.short_hex() + " cannot be written: it takes " +
                                   format_bytes(charge) + ", more than the limit leaves");
  return false;
}

bool HotTier::hand_over(const BlockHash& hash, const Looked& looked, QueuedWrite write, Move move) {
  const uint64_t charge = round_up(looked.image->file_bytes(), state_.directory->block_bytes());
  WritePromise promise(state_, write.ticket, charge);
  auto pending = std::make_unique<PendingBlock>(
      PendingBlock{write.ticket.generation, PendingState::kQueued, charge, looked.image, {}});
  std::unique_ptr<HotBlock> left;
  bool queued = false;
  bool parked = false;
  {
    LockedEntry locked(state_.index, hash);
    Entry* entry = locked.get();
    if (entry != nullptr && entry->hot != nullptr && entry->pending == nullptr &&
        entry->hot->generation == looked.generation && entry->hot->dirty) {
      parked = entry->file.state == FileState::kRemoving;
      queued = !parked;
      if (parked) pending->state = PendingState::kParked;
      pending->layout = entry->hot->layout;
      entry->pending = std::move(pending);
      if (move == Move::kLeaves) left = std::move(entry->hot);
    }
  }
  if (!queued && !parked) return false;
  promise.keep();
  if (left != nullptr) forget(hash, *left);
  if (queued) state_.enqueue(std::move(write));
  state_.emit(move == Move::kLeaves ? EventKind::kSpillQueued : EventKind::kFlushQueued, &hash,
              looked.image->file_bytes());
  return true;
}

bool HotTier::write_dirty(bool only_due, std::optional<Duration> deadline) {
  std::optional<Duration> now;
  if (only_due) now = state_.clock().mono();
  for (const DirtyBlocks::Item& item : heads_first(dirty_.due(now))) {
    if (!write_one(item, only_due, deadline)) return false;
  }
  return true;
}

// False if the queue is full.
bool HotTier::write_one(const DirtyBlocks::Item& item, bool only_due,
                        std::optional<Duration> deadline) {
  const Looked looked = look(item.hash);
  if (looked.found != Found::kDirty) return true;
  if (!can_be_written(item.hash, looked)) {
    LockedEntry locked(state_.index, item.hash);
    if (locked.get() != nullptr && locked.get()->hot != nullptr) mark_clean(*locked.get()->hot);
    return true;
  }
  Duration wait = Duration::zero();
  if (!only_due) wait = deadline ? *deadline - state_.clock().mono() : Duration::max() / 2;
  const auto entrance = only_due ? WriteQueue::Entrance::kBackground : WriteQueue::Entrance::kFlush;
  // The hot tier goes on holding the image, so the queue holds no bytes of it.
  const auto ticket = state_.queue.take_ticket(0, wait, entrance);
  if (!ticket) return false;
  QueuedWrite write{item.hash, *ticket, {}};
  if (only_due) write.can_wait_until = item.since + kUrgentAge * *state_.options.flush_after;
  hand_over(item.hash, looked, std::move(write), Move::kStays);
  return true;
}

// What is written first is what a crash does not lose, and a tail without its head is of no use.
std::vector<DirtyBlocks::Item> HotTier::heads_first(std::vector<DirtyBlocks::Item> items) {
  std::unordered_map<BlockHash, size_t> place;
  for (size_t i = 0; i < items.size(); ++i) place.emplace(items[i].hash, i);
  std::vector<bool> placed(items.size(), false);
  std::vector<DirtyBlocks::Item> ordered;
  for (size_t i = 0; i < items.size(); ++i) {
    std::vector<size_t> chain;  // From the tail up to the first head that is placed or unknown.
    for (std::optional<size_t> at = i; at && !placed[*at];) {
      placed[*at] = true;
      chain.push_back(*at);
      const ImagePtr image = look(items[*at].hash).image;
      const bool known = image != nullptr && image->header().info.parent;
      const auto next = known ? place.find(*image->header().info.parent) : place.end();
      at = next == place.end() ? std::nullopt : std::optional(next->second);
    }
    for (auto at = chain.rbegin(); at != chain.rend(); ++at) ordered.push_back(items[*at]);
  }
  return ordered;
}

size_t HotTier::clear(HotClear how) {
  size_t cleared = 0;
  for (const BlockHash& hash : budget_->blocks_of(self_)) {
    const Looked looked = look(hash);
    if (looked.found == Found::kGone) continue;
    if (how == HotClear::kSpill && looked.found == Found::kDirty && !state_.options.hot_only) {
      cleared += spill(hash, looked, Patience::kQueueWait);
    } else {
      cleared += drop(hash, looked.generation);
    }
  }
  return cleared;
}

uint64_t HotTier::shrink_to(uint64_t bytes, const HashSet& keep) {
  const uint64_t freed = budget_->shrink_owner(
      self_, static_cast<int64_t>(std::min<uint64_t>(bytes, INT64_MAX)), keep);
  if (state_.options.hot_only && freed > 0) {
    state_.log(LogLevel::kWarning, "the hot tier was shrunk: blocks of " + format_bytes(freed) +
                                       " are gone, because there is no disk to keep them");
  }
  return freed;
}

void HotTier::leave() {
  for (const BlockHash& hash : budget_->blocks_of(self_)) {
    std::unique_ptr<HotBlock> dropped;
    LockedEntry locked(state_.index, hash);
    if (locked.get() == nullptr || locked.get()->hot == nullptr) continue;
    dropped = std::move(locked.get()->hot);
    if (dropped->dirty) dirty_.remove(dropped->generation);
    locked.erase_if_empty();
  }
  budget_->forget_owner(self_);
}

void HotTier::add_dirty(const BlockHash& hash, uint64_t generation) {
  const Duration now = state_.clock().mono();
  const Duration wait = state_.options.flush_after.value_or(Duration::max() / 2 - now);
  dirty_.add(generation, {hash, now, now + wait});
  if (state_.options.flush_after) arm();
}

// One timer at a time, and none while nothing is dirty. It keeps nothing alive.
void HotTier::arm() {
  if (armed_.exchange(true)) return;
  const Duration now = state_.clock().mono();
  const Duration soonest = *state_.options.flush_after / 4;
  const Duration wait = std::max(dirty_.next_due().value_or(now) - now, soonest);
  try {
    state_.environment.executor->post_after(wait, [this, self = self_] {
      if (const std::shared_ptr<HotOwner> alive = self.lock()) run_due();
    });
  } catch (const std::bad_alloc&) {
    armed_ = false;  // The next dirty block tries again.
  }
}

void HotTier::run_due() {
  armed_ = false;
  if (state_.gate.is_closed()) return;
  write_dirty(true);
  if (dirty_.size() > 0) arm();
}

}  // namespace kvkeep
