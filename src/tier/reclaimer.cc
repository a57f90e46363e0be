#include "tier/reclaimer.h"

#include "base/guarded.h"
#include "kvkeep/size_string.h"

namespace kvkeep {
namespace {

constexpr size_t kLookAhead = 16;
constexpr Duration kRetryUnlinkAfter = std::chrono::seconds(60);
constexpr uint64_t kUnlinksPerTurn = 32;    // Between two writes.
constexpr uint64_t kUnlinksPerStep = 1000;  // Towards a limit that comes from free space (RUL-08).

uint64_t ninety_percent(uint64_t bytes) {
  return static_cast<uint64_t>(static_cast<double>(bytes) * 0.9);
}

}  // namespace

Status never_fits(const CacheState& state, uint64_t charge) {
  const bool disk_full = state.disk_space->effective() < state.disk_space->configured();
  return Status(Code::kResourceExhausted, Refusal::kTooLarge,
                "the block takes " + format_bytes(charge) + " on disk; " +
                    (disk_full ? "the nearly full disk" : "max_size_bytes") + " leaves room for " +
                    format_bytes(state.account->largest_block()));
}

Status can_be_reached(CacheState& state, const std::optional<BlockHash>& parent) {
  if (!parent || state.options.eviction == Eviction::kLru) return {};
  {
    LockedEntry locked(state.index, *parent);
    if (locked.get() != nullptr) return {};
  }
  if (state.departed.why(*parent) != MissReason::kEvicted) return {};
  return Status(Code::kResourceExhausted, Refusal::kNoSpace,
                "block " + parent->short_hex() + ", which it continues, has given room");
}

Reclaimer::Outcome Reclaimer::evict(const Goal& goal) {
  Outcome outcome;
  while (goal.excess() > 0 && give_up_oldest(goal, outcome)) continue;
  return outcome;
}

EvictionReport Reclaimer::make_room(uint64_t incoming, uint64_t max_unlinks) {
  const SpaceAccount& account = *state_.account;
  const uint64_t limit = account.usable();
  // What never fits is not a reason to evict everything.
  const uint64_t room = incoming <= limit ? incoming : limit - ninety_percent(limit);
  const auto excess = [&] { return account.shortfall(room); };
  const Outcome outcome = evict({excess, max_unlinks, Victims::kAny});
  const EvictionReport report{outcome.blocks, outcome.failed, excess()};
  if (report.deferred_bytes > 0) {
    state_.log(LogLevel::kDebug, "eviction of " + format_bytes(report.deferred_bytes) +
                                     " is left to the writer and later saves");
  }
  return report;
}

uint64_t Reclaimer::enforce_limit() {
  const SpaceAccount& account = *state_.account;
  const uint64_t limit = state_.disk_space->effective();
  if (account.tracked() <= limit) return 0;
  const uint64_t target = ninety_percent(limit);
  const auto excess = [&] {
    const uint64_t tracked = account.tracked();
    return tracked > target ? tracked - target : 0;
  };
  const uint64_t freed = evict({excess, UINT64_MAX, Victims::kAny}).bytes;
  state_.disk_space->follow();
  return freed;
}

// Blocks that wait to be written stay: their bytes are the reason for keeping some free.
bool Reclaimer::keep_free(double share) {
  const SpaceAccount& account = *state_.account;
  const auto free = static_cast<uint64_t>(static_cast<double>(account.usable()) * share);
  if (free == 0) return false;
  const auto excess = [&] { return account.shortfall(free); };
  const Outcome outcome = evict({excess, kUnlinksPerTurn, Victims::kFilesOnly});
  return outcome.blocks > 0 && excess() > 0;
}

bool Reclaimer::step_down() {
  DiskSpace& space = *state_.disk_space;
  const uint64_t surplus = space.surplus();
  if (surplus == 0) return false;
  state_.log(LogLevel::kWarning,
             "the disk fills up: the store gives back " + format_bytes(surplus) + " of " +
                 format_bytes(state_.account->used()) + ", the least recently used first");
  const auto excess = [&space] { return space.surplus(); };
  const Outcome outcome = evict({excess, kUnlinksPerStep, Victims::kFilesOnly});
  space.follow();
  return outcome.blocks > 0 && excess() > 0;
}

bool Reclaimer::evict_file() {
  Outcome outcome;
  const Goal goal{{}, UINT64_MAX, Victims::kFilesOnly};
  return give_up_oldest(goal, outcome) || wait_for_removal();
}

// Whatever leaves may change the order, so each victim is looked for anew.
// A block that others continue leaves only where there are none that nothing continues, which is
// a circle of parents, or where none of those can be unlinked.
bool Reclaimer::give_up_oldest(const Goal& goal, Outcome& outcome) {
  outcome.leaf_stays = false;
  for (size_t skip = 0;; skip += kLookAhead) {
    const std::vector<BlockHash> oldest = state_.index.order().oldest(kLookAhead, skip);
    if (oldest.empty()) return false;
    for (const BlockHash& hash : oldest) {
      if (outcome.unlinks + outcome.failed >= goal.max_unlinks) return false;
      if (give_up(hash, goal.victims, outcome)) return true;
    }
  }
}

// But for an unlink that failed lately.
bool Reclaimer::can_leave(const Entry& entry, Victims victims) const {
  if (entry.busy() || entry.stays(state_.clock().mono())) return false;
  if (entry.pending == nullptr) return entry.file.state != FileState::kNone;
  return victims == Victims::kAny && entry.pending->state == PendingState::kQueued;
}

// Others stay while somebody removes a block that was to leave before them.
bool Reclaimer::must_leave_first(const Entry& entry) const {
  return entry.file.state == FileState::kRemoving && state_.index.order().is_first(entry.order);
}

bool Reclaimer::give_up(const BlockHash& hash, Victims victims, Outcome& outcome) {
  std::unique_ptr<PendingBlock> cancelled;
  std::optional<FileClaim> claim;
  bool still_hot = false;
  {
    LockedEntry locked(state_.index, hash);
    Entry* entry = locked.get();
    if (entry == nullptr) return true;  // The one that it continued may be next.
    const bool leaf = !state_.index.order().has_children(entry->order);
    if (!leaf && outcome.leaf_stays) return false;
    if (must_leave_first(*entry)) {
      locked.wait_until_idle();
      return true;
    }
    if (!can_leave(*entry, victims)) {
      outcome.leaf_stays = outcome.leaf_stays || leaf;
      return false;
    }
    still_hot = entry->hot != nullptr;
    if (entry->pending != nullptr) {
      cancelled = cancel_pending(state_, locked, hash);
      // A hot copy may stay, but it has had its turn on the disk.
      if (entry->hot != nullptr) state_.hot.mark_clean(*entry->hot);
      locked.erase_if_empty();
    } else {
      if (entry->file.retry_after > state_.clock().mono()) return false;
      claim = claim_file(locked, hash);
    }
  }
  if (claim) {
    const bool gone = unlink_claimed(*claim);
    ++(gone ? outcome.unlinks : outcome.failed);
    if (!gone) return false;
  } else {
    state_.stats.add(&CacheStats::ssd_write_drops);
    if (!still_hot) state_.departed.remember(hash, MissReason::kEvicted);
  }
  ++outcome.blocks;
  outcome.bytes += claim ? claim->former.allocated : cancelled->charge;
  return true;
}

bool Reclaimer::unlink_claimed(const FileClaim& claim) {
  const auto removed = guarded(Asked::kOther, [&] { return state_.directory->remove(claim.hash); });
  if (removed.ok()) {
    state_.stats.add(&CacheStats::evictions);
    file_gone(state_, claim, MissReason::kEvicted);
    state_.emit(EventKind::kEvicted, &claim.hash, claim.former.allocated);
    return true;
  }
  BlockFile kept = claim.former;
  kept.retry_after = state_.clock().mono() + kRetryUnlinkAfter;
  file_stays(state_, claim, std::move(kept));
  state_.stats.add(&CacheStats::evict_unlink_failures);
  state_.emit(EventKind::kUnlinkFailed, &claim.hash, claim.former.allocated);
  state_.log(LogLevel::kError, "block " + claim.hash.short_hex() +
                                   ": cannot be evicted: " + removed.status().message());
  return false;
}

// Somebody else's removal gives its bytes back before it ends, so waiting for one is as good as
// evicting.
bool Reclaimer::wait_for_removal() {
  for (const BlockHash& hash : state_.index.order().oldest(SIZE_MAX)) {
    LockedEntry locked(state_.index, hash);
    if (locked.get() == nullptr || locked.get()->file.state != FileState::kRemoving) continue;
    locked.wait_until_idle();
    return true;
  }
  return false;
}

}  // namespace kvkeep
