// Quarantine keeps damaged block files aside for inspection, up to a number of bytes, oldest leave
// first.
//
// Nothing is served from it. A file comes in by rename, so its bytes stay charged to the store.
//
// Threads: any thread, for different blocks. mu_ is a leaf lock, never held over a system call.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "io/file_system.h"
#include "kvkeep/block_hash.h"
#include "kvkeep/status.h"

namespace kvkeep {

// How the bytes of the quarantine changed.
struct QuarantineReport {
  uint64_t added_bytes = 0;    // Allocated bytes now in the quarantine that were not before.
  uint64_t removed_bytes = 0;  // Allocated bytes of older files that left it.
};

class Quarantine {
 public:
  // Takes stock of .kvkeep/quarantine/ and makes it fit `max_bytes`. `file_system` must outlive it.
  static Result<std::unique_ptr<Quarantine>> open(FileSystem& file_system, uint64_t max_bytes);

  // Moves the block's file aside, or deletes it where it does not fit alone or cannot be moved.
  // kNotFound: there is no such block file. kUnavailable: it could be neither moved nor deleted.
  Result<QuarantineReport> take(const BlockHash& hash, uint64_t allocated) KVKEEP_EXCLUDES(mu_);

  uint64_t bytes() const KVKEEP_EXCLUDES(mu_);

 private:
  // Oldest first.
  using Files = std::map<std::pair<uint64_t, std::string>, uint64_t>;  // (number, path): allocated.

  Quarantine(FileSystem& file_system, uint64_t max_bytes);
  Status load() KVKEEP_EXCLUDES(mu_);
  Status move_in(const BlockHash& hash, uint64_t allocated) KVKEEP_EXCLUDES(mu_);
  void add(uint64_t number, std::string path, uint64_t allocated) KVKEEP_EXCLUDES(mu_);
  // Takes files that must go off the list, oldest first.
  Files take_surplus() KVKEEP_EXCLUDES(mu_);
  // Removes files until the rest fits; one that cannot be removed stays. Returns the bytes removed.
  uint64_t trim() KVKEEP_EXCLUDES(mu_);

  FileSystem& file_system_;
  const uint64_t max_bytes_;
  mutable Mutex mu_;
  Files files_ KVKEEP_GUARDED_BY(mu_);
  uint64_t bytes_ KVKEEP_GUARDED_BY(mu_) = 0;
  uint64_t last_number_ KVKEEP_GUARDED_BY(mu_) = 0;
};

}  // namespace kvkeep
