// PendingNotes: what a cache was told about itself and has not written down yet (store_notes.h).
//
// Bounded: what comes while too much waits is left out.
//
// Threads: any thread. mu_ is a leaf lock.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "disk/namespaces.h"

namespace kvkeep {

class PendingNotes {
 public:
  struct Notes {
    std::vector<NamespaceClaim> namespaces;
    bool limit = false;  // It has changed.
  };

  // True if nobody is about to write notes: then the caller has to see to it.
  bool add(NamespaceClaim claim) KVKEEP_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    if (notes_.namespaces.size() < kNamespacesMax) notes_.namespaces.push_back(std::move(claim));
    return !std::exchange(writer_is_due_, true);
  }
  bool add_limit() KVKEEP_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    notes_.limit = true;
    return !std::exchange(writer_is_due_, true);
  }
  // For whoever writes. None: that is all, and the next note needs a writer of its own.
  std::optional<Notes> take() KVKEEP_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    writer_is_due_ = notes_.limit || !notes_.namespaces.empty();
    return writer_is_due_ ? std::optional(std::exchange(notes_, {})) : std::nullopt;
  }

 private:
  Mutex mu_;
  Notes notes_ KVKEEP_GUARDED_BY(mu_);
  bool writer_is_due_ KVKEEP_GUARDED_BY(mu_) = false;
};

}  // namespace kvkeep
