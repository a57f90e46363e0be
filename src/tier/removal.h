// Taking blocks out: cancelling pending ones, and removing files without a lock held.
//
// A removal has two steps. claim_file() puts the file into kRemoving, which makes the caller its
// owner; the caller unlinks or moves it without any lock; finish_removal() ends it. A save that
// comes in between is parked and goes to the write queue at the end.
#pragma once

#include <memory>

#include "index/block_index.h"
#include "tier/cache_state.h"

namespace kvkeep {

struct FileClaim {
  BlockHash hash;
  BlockFile former;
};

// REQUIRES: the entry has a file and is not busy.
FileClaim claim_file(LockedEntry& locked, const BlockHash& hash);

// The file is gone: its bytes are given back and `why` is what later lookups are told.
void file_gone(CacheState& state, const FileClaim& claim, MissReason why);
// The file is still there, as `now`.
void file_stays(CacheState& state, const FileClaim& claim, BlockFile now);

// Takes the pending block out, whatever its state but kCommitting; its write will not be committed.
// Destroy the result only after `locked` is gone: it may hold the last reference to an image.
// REQUIRES: there is one.
std::unique_ptr<PendingBlock> cancel_pending(CacheState& state, LockedEntry& locked,
                                             const BlockHash& hash);

// What left the index. It may hold the last reference to an image: destroy it after the lock.
struct Withdrawn {
  std::unique_ptr<PendingBlock> pending;
  std::unique_ptr<HotBlock> hot;
};

// Takes a served block out of service because of `why`: what is in memory goes, and the file stays,
// counted but not served.
// REQUIRES: the entry is servable and its file is not kRemoving; pending is not kCommitting.
[[nodiscard]] Withdrawn withdraw(CacheState& state, LockedEntry& locked, const BlockHash& hash,
                                 MissReason why);
// Ends it, once the lock is released.
void end_withdrawal(CacheState& state, const BlockHash& hash, Withdrawn withdrawn);

// withdraw() for a caller that found the block unusable. False if the block was not served. Waits
// for a rename or unlink of the block that is under way.
bool forget_block(CacheState& state, const BlockHash& hash);

enum class Leased : uint8_t { kRefuse, kRemove };

// Removes the block from every tier. True if there was something. kFailedPrecondition if it is
// leased and leased blocks are refused.
Result<bool> remove_block(CacheState& state, const BlockHash& hash, Leased leased);

// A caller found the block unusable: out of memory, and its file aside. True if there was
// something.
Result<bool> report_bad_block(CacheState& state, const BlockHash& hash);

// Moves the damaged file that was read as `generation` aside. Does nothing if another file took its
// place.
void quarantine_block(CacheState& state, const BlockHash& hash, uint64_t generation);

// Stops serving the file that was read as `generation`, but keeps counting it. `layout`: what it
// really has, where that is not what the index was told.
void make_incompatible(CacheState& state, const BlockHash& hash, uint64_t generation,
                       MissReason why, LayoutPtr layout = nullptr);

// Reading the file of `generation` failed. It is left alone for a while, longer each time; after
// the third failure in a row it is not served any more, but stays counted.
void make_suspect(CacheState& state, const BlockHash& hash, uint64_t generation);

// The file of `generation` has gone from under us.
void forget_missing(CacheState& state, const BlockHash& hash, uint64_t generation);

}  // namespace kvkeep
