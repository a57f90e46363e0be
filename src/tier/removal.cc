#include "tier/removal.h"

#include <algorithm>
#include <cassert>

#include "base/guarded.h"

namespace kvkeep {
namespace {

constexpr Duration kFirstSuspicion = std::chrono::seconds(1);
constexpr Duration kLongestSuspicion = std::chrono::seconds(60);
constexpr uint8_t kMostReadFailures = 3;

// Ends the claim, and sends a block that was saved meanwhile on its way. True if it is in memory.
bool end_claim(CacheState& state, const FileClaim& claim, BlockFile now) {
  std::optional<QueuedWrite> parked;
  bool in_memory = false;
  {
    LockedEntry locked(state.index, claim.hash);
    Entry* entry = locked.get();
    assert(entry != nullptr && entry->file.state == FileState::kRemoving);
    entry->file = std::move(now);
    in_memory = entry->pending != nullptr || entry->hot != nullptr;
    if (entry->pending != nullptr && entry->pending->state == PendingState::kParked) {
      entry->pending->state = PendingState::kQueued;
      parked = QueuedWrite{claim.hash, {entry->pending->generation}};
    }
    locked.erase_if_empty();
    locked.notify();
  }
  if (parked) state.enqueue(*std::move(parked));
  return in_memory;
}

bool is_file_of(const Entry* entry, uint64_t generation) {
  return entry != nullptr && entry->file.state == FileState::kDurable && !entry->busy() &&
         entry->file.generation == generation;
}

}  // namespace

FileClaim claim_file(LockedEntry& locked, const BlockHash& hash) {
  Entry& entry = *locked.get();
  assert(entry.file.state != FileState::kNone && !entry.busy());
  FileClaim claim{hash, entry.file};
  entry.file.state = FileState::kRemoving;
  return claim;
}

void file_gone(CacheState& state, const FileClaim& claim, MissReason why) {
  state.account->release(claim.former.allocated);
  if (!end_claim(state, claim, {})) state.departed.remember(claim.hash, why);
}

void file_stays(CacheState& state, const FileClaim& claim, BlockFile now) {
  end_claim(state, claim, std::move(now));
}

namespace {

void quarantine(CacheState& state, const FileClaim& claim) {
  const auto moved = guarded(Asked::kOther, [&] {
    return state.directory->quarantine(claim.hash, claim.former.allocated);
  });
  state.stats.add({{&CacheStats::quarantined}, {&CacheStats::errors}});
  state.emit(EventKind::kQuarantined, &claim.hash, claim.former.allocated);
  if (!moved.ok() && moved.status().code() != Code::kNotFound) {
    BlockFile kept = claim.former;
    kept.state = FileState::kIncompatible;
    kept.why = MissReason::kDamaged;
    file_stays(state, claim, std::move(kept));
    return;
  }
  if (moved.ok()) {
    state.account->charge_found(moved->added_bytes);
    state.account->release(moved->removed_bytes);
    state.quarantine_bytes += moved->added_bytes - moved->removed_bytes;
  }
  file_gone(state, claim, MissReason::kDamaged);
}

}  // namespace

std::unique_ptr<PendingBlock> cancel_pending(CacheState& state, LockedEntry& locked,
                                             const BlockHash& hash) {
  std::unique_ptr<PendingBlock> pending = std::move(locked.get()->pending);
  assert(pending->state != PendingState::kCommitting);
  if (pending->state == PendingState::kWriting)
    return pending;  // The writer gives up what it holds.
  state.account->unreserve(pending->charge);
  state.stats.add(&CacheStats::writes_cancelled);
  // A queued ticket ends when the writer meets it; a parked one would never be met.
  if (pending->state == PendingState::kParked) {
    state.queue.finish({hash, {pending->generation}}, WriteEnd::kCancelled);
  }
  return pending;
}

Withdrawn withdraw(CacheState& state, LockedEntry& locked, const BlockHash& hash, MissReason why) {
  Entry& entry = *locked.get();
  assert(entry.servable());
  Withdrawn withdrawn;
  if (entry.pending != nullptr) withdrawn.pending = cancel_pending(state, locked, hash);
  withdrawn.hot = std::move(entry.hot);
  if (entry.file.state == FileState::kDurable) {
    entry.file.state = FileState::kIncompatible;
    entry.file.why = why;
  } else if (entry.file.state == FileState::kNone) {
    state.departed.remember(hash, why);
  }
  locked.erase_if_empty();
  return withdrawn;
}

void end_withdrawal(CacheState& state, const BlockHash& hash, Withdrawn withdrawn) {
  if (withdrawn.hot != nullptr) state.hot.forget(hash, *withdrawn.hot);
}

bool forget_block(CacheState& state, const BlockHash& hash) {
  Withdrawn withdrawn;
  {
    LockedEntry locked(state.index, hash);
    locked.wait_until_idle();
    if (locked.get() == nullptr || !locked.get()->servable()) return false;
    withdrawn = withdraw(state, locked, hash, MissReason::kForgotten);
  }
  end_withdrawal(state, hash, std::move(withdrawn));
  return true;
}

namespace {

struct TakenOut {
  bool found = false;
  bool leased = false;            // Then it was left alone.
  std::optional<FileClaim> file;  // For the caller to remove.
};

// Every copy in memory goes. What has no file is gone with that, and `why` is what later lookups
// are told.
TakenOut take_out(CacheState& state, const BlockHash& hash, MissReason why,
                  Leased leased = Leased::kRemove) {
  std::unique_ptr<PendingBlock> cancelled;
  std::unique_ptr<HotBlock> cooled;
  TakenOut taken;
  {
    LockedEntry locked(state.index, hash);
    locked.wait_until_idle();
    if (locked.get() == nullptr) return taken;
    taken.found = true;
    taken.leased = leased == Leased::kRefuse && locked.get()->leased(state.clock().mono());
    if (taken.leased) return taken;
    if (locked.get()->pending != nullptr) cancelled = cancel_pending(state, locked, hash);
    cooled = std::move(locked.get()->hot);
    if (locked.get()->file.state != FileState::kNone) taken.file = claim_file(locked, hash);
    locked.erase_if_empty();
  }
  if (cooled != nullptr) state.hot.forget(hash, *cooled);
  if (!taken.file) state.departed.remember(hash, why);
  return taken;
}

}  // namespace

Result<bool> remove_block(CacheState& state, const BlockHash& hash, Leased leased) {
  const auto [found, refused, claim] = take_out(state, hash, MissReason::kDeleted, leased);
  if (refused) return leased_status(state, hash);
  if (!claim) return found;
  const auto removed = guarded(Asked::kOther, [&] { return state.directory->remove(hash); });
  if (removed.ok()) {
    file_gone(state, *claim, MissReason::kDeleted);
    return true;
  }
  // The bytes are still on the disk: they stay counted, and nobody is served from them.
  BlockFile kept = claim->former;
  kept.state = FileState::kIncompatible;
  kept.why = MissReason::kDeleted;
  file_stays(state, *claim, std::move(kept));
  return removed.status();
}

Result<bool> report_bad_block(CacheState& state, const BlockHash& hash) {
  const auto [found, refused, claim] = take_out(state, hash, MissReason::kDamaged);
  if (!found) return false;
  state.stats.add(&CacheStats::reported_bad);
  if (claim) quarantine(state, *claim);
  return true;
}

void quarantine_block(CacheState& state, const BlockHash& hash, uint64_t generation) {
  std::optional<FileClaim> claim;
  {
    LockedEntry locked(state.index, hash);
    if (!is_file_of(locked.get(), generation)) return;
    claim = claim_file(locked, hash);
  }
  quarantine(state, *claim);
}

void make_incompatible(CacheState& state, const BlockHash& hash, uint64_t generation,
                       MissReason why, LayoutPtr layout) {
  LockedEntry locked(state.index, hash);
  if (!is_file_of(locked.get(), generation)) return;
  locked.get()->file.state = FileState::kIncompatible;
  locked.get()->file.why = why;
  if (layout != nullptr) locked.get()->file.layout = std::move(layout);
}

void make_suspect(CacheState& state, const BlockHash& hash, uint64_t generation) {
  LockedEntry locked(state.index, hash);
  if (!is_file_of(locked.get(), generation)) return;
  BlockFile& file = locked.get()->file;
  ++file.read_failures;
  const Duration wait = kFirstSuspicion * (1 << (file.read_failures - 1));
  file.suspect_until = state.clock().mono() + std::min<Duration>(wait, kLongestSuspicion);
  if (file.read_failures < kMostReadFailures) return;
  file.state = FileState::kIncompatible;
  file.why = MissReason::kUnreadable;
  locked.put_first();
}

void forget_missing(CacheState& state, const BlockHash& hash, uint64_t generation) {
  LockedEntry locked(state.index, hash);
  if (!is_file_of(locked.get(), generation)) return;
  state.account->release(locked.get()->file.allocated);
  locked.get()->file = {};
  locked.erase_if_empty();
}

}  // namespace kvkeep
