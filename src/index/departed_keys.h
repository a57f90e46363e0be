// DepartedKeys remembers why blocks left, for a bounded number of keys, so that a later miss can
// say so.
//
// A fingerprint table of fixed size: a newer departure may overwrite an older one, which then reads
// as "absent". It never names a reason for a key that did not leave, short of a 63-bit collision.
//
// Threads: any thread. mu_ is a leaf lock.
#pragma once

#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "kvkeep/block_hash.h"
#include "kvkeep/reason.h"

namespace kvkeep {

class DepartedKeys {
 public:
  explicit DepartedKeys(size_t slots = 64 * 1024) : slots_(slots) {}

  void remember(const BlockHash& hash, MissReason why) KVKEEP_EXCLUDES(mu_);
  void forget(const BlockHash& hash) KVKEEP_EXCLUDES(mu_);
  // kAbsent if nothing is remembered.
  MissReason why(const BlockHash& hash) const KVKEEP_EXCLUDES(mu_);

 private:
  struct Slot {
    uint64_t fingerprint = 0;  // 0: free.
    MissReason why = MissReason::kAbsent;
  };
  static uint64_t fingerprint(const BlockHash& hash);

  mutable Mutex mu_;
  std::vector<Slot> table_ KVKEEP_GUARDED_BY(mu_);  // Allocated at the first departure.
  const size_t slots_;
};

}  // namespace kvkeep
