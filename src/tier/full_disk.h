// FullDisk answers a disk that refuses bytes although the limit allows them: others fill it, inodes
// have run out, or a quota is reached.
//
// Blocks are given up for room, but not for nothing: at most once a second, and where three times
// in a row nothing became free (somebody else takes it at once, or deleted files are still open),
// not again until space was freed or a minute has passed. docs/contract.md: RUL-09.
//
// Threads: any thread. mu_ is a leaf lock.
#pragma once

#include <cstdint>
#include <optional>

#include "base/mutex.h"
#include "tier/reclaimer.h"

namespace kvkeep {

// ENOSPC or EDQUOT.
bool is_full(const Status& status);

class FullDisk {
 public:
  explicit FullDisk(CacheState& state) : state_(state), reclaimer_(state) {}

  // A file of `needed` bytes met a full disk. True if room was made and the write is worth another
  // try. Reads free space and unlinks files on the calling thread.
  bool make_room(uint64_t needed) KVKEEP_EXCLUDES(mu_);
  // Which of the three it is, by the last reading. REQUIRES: is_full(status).
  Refusal reason(const Status& status) const;

 private:
  uint64_t read_free();
  bool may_reclaim(uint64_t free) KVKEEP_EXCLUDES(mu_);
  bool reclaim(uint64_t needed);
  void note(uint64_t free_before, uint64_t free_after) KVKEEP_EXCLUDES(mu_);

  CacheState& state_;
  Reclaimer reclaimer_;
  Mutex mu_;
  std::optional<Duration> last_ KVKEEP_GUARDED_BY(mu_);
  unsigned futile_ KVKEEP_GUARDED_BY(mu_) = 0;  // In a row.
  uint64_t free_then_ KVKEEP_GUARDED_BY(mu_) = 0;
};

}  // namespace kvkeep
