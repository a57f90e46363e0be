#include "index/departed_keys.h"

#include <new>

namespace kvkeep {

void DepartedKeys::remember(const BlockHash& hash, MissReason why) {
  const uint64_t print = fingerprint(hash);
  MutexLock lock(mu_);
  if (table_.empty()) {
    try {
      table_.resize(slots_);
    } catch (const std::bad_alloc&) {
      return;  // Nobody will know why, which harms nothing.
    }
  }
  table_[print % slots_] = {print, why};
}

void DepartedKeys::forget(const BlockHash& hash) {
  const uint64_t print = fingerprint(hash);
  MutexLock lock(mu_);
  if (table_.empty()) return;
  Slot& slot = table_[print % slots_];
  if (slot.fingerprint == print) slot = {};
}

MissReason DepartedKeys::why(const BlockHash& hash) const {
  const uint64_t print = fingerprint(hash);
  MutexLock lock(mu_);
  if (table_.empty()) return MissReason::kAbsent;
  const Slot& slot = table_[print % slots_];
  return slot.fingerprint == print ? slot.why : MissReason::kAbsent;
}

uint64_t DepartedKeys::fingerprint(const BlockHash& hash) { return hash.hash_value() | 1; }

}  // namespace kvkeep
