#include "tier/reclaimer.h"

namespace kvkeep {
namespace {

constexpr size_t kLookAhead = 16;
constexpr Duration kRetryUnlinkAfter = std::chrono::seconds(60);

}  // namespace

void Reclaimer::make_room(uint64_t max_unlinks) {
  uint64_t unlinked = 0;
  while (unlinked < max_unlinks && state_.account->shortfall(0) > 0) {
    const Given given = give_up_oldest(Victims::kAny);
    if (given == Given::kNothing) return;
    if (given == Given::kUnlinkedFile) ++unlinked;
  }
}

bool Reclaimer::evict_file() {
  return give_up_oldest(Victims::kFilesOnly) != Given::kNothing || wait_for_removal();
}

Reclaimer::Given Reclaimer::give_up_oldest(Victims victims) {
  for (size_t skip = 0;; skip += kLookAhead) {
    const std::vector<BlockHash> oldest = state_.index.order().oldest(kLookAhead, skip);
    if (oldest.empty()) return Given::kNothing;
    for (const BlockHash& hash : oldest) {
      const Given given = give_up(hash, victims);
      if (given != Given::kNothing) return given;
    }
  }
}

Reclaimer::Given Reclaimer::give_up(const BlockHash& hash, Victims victims) {
  std::unique_ptr<PendingBlock> cancelled;
  std::optional<FileClaim> claim;
  bool still_hot = false;
  {
    LockedEntry locked(state_.index, hash);
    Entry* entry = locked.get();
    if (entry == nullptr || entry->busy()) return Given::kNothing;
    still_hot = entry->hot != nullptr;
    if (entry->pending != nullptr) {
      const bool cancellable =
          victims == Victims::kAny && entry->pending->state == PendingState::kQueued;
      if (!cancellable) return Given::kNothing;
      cancelled = cancel_pending(state_, locked, hash);
      // A hot copy may stay, but it has had its turn on the disk.
      if (entry->hot != nullptr) state_.hot.mark_clean(*entry->hot);
      locked.erase_if_empty();
    } else if (entry->file.state == FileState::kNone) {
      return Given::kNothing;
    } else {
      if (entry->file.retry_after > state_.clock().mono()) return Given::kNothing;
      claim = claim_file(locked, hash);
    }
  }
  if (claim) return unlink_claimed(*claim) ? Given::kUnlinkedFile : Given::kNothing;
  state_.stats.add(&CacheStats::ssd_write_drops);
  if (!still_hot) state_.departed.remember(hash, MissReason::kEvicted);
  return Given::kCancelledWrite;
}

bool Reclaimer::unlink_claimed(const FileClaim& claim) {
  const Result<bool> removed = state_.directory->remove(claim.hash);
  if (removed.ok()) {
    state_.stats.add(&CacheStats::evictions);
    file_gone(state_, claim, MissReason::kEvicted);
    return true;
  }
  BlockFile kept = claim.former;
  kept.retry_after = state_.clock().mono() + kRetryUnlinkAfter;
  file_stays(state_, claim, std::move(kept));
  state_.stats.add(&CacheStats::evict_unlink_failures);
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
