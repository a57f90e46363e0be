// SpaceAccount knows how many bytes a store occupies on disk and how many are promised.
//
// Everything is in allocated bytes. `used` is what exists: block files, temporary files, the
// quarantine, .kvkeep/ and directories. `reserved` is what accepted blocks will need. used <= limit
// holds after each charge made through begin_write(); tracked = used + reserved may exceed it
// while the writer is still making room. The account counts; it neither reads the disk nor evicts.
//
// Threads: any thread. mu_ is a leaf lock.
#pragma once

#include <cstdint>

#include "base/mutex.h"

namespace kvkeep {

class SpaceAccount {
 public:
  // Part of the limit is kept free for the growth of directories and service files: 1/512 of it,
  // but at least `least_headroom` bytes. 0: nothing, where they cost nothing.
  SpaceAccount(uint64_t limit, uint64_t least_headroom)
      : least_headroom_(least_headroom), limit_(limit) {}

  // The largest charge that could ever fit: limit minus headroom and overhead.
  uint64_t largest_block() const KVKEEP_EXCLUDES(mu_);
  // How much must go before `bytes` more fit beside everything tracked. 0: they fit now.
  uint64_t shortfall(uint64_t bytes) const KVKEEP_EXCLUDES(mu_);

  // A block was accepted, or gave up its promise.
  void reserve(uint64_t bytes) KVKEEP_EXCLUDES(mu_);
  void unreserve(uint64_t bytes) KVKEEP_EXCLUDES(mu_);

  // Turns a promise into use, if it fits beside everything that exists; else changes nothing.
  bool begin_write(uint64_t bytes) KVKEEP_EXCLUDES(mu_);
  // A file turned out to need `bytes` more. False, and nothing is charged, if they do not fit.
  bool charge_more(uint64_t bytes) KVKEEP_EXCLUDES(mu_);
  // Something exists that was found, not written (scan, service files).
  void charge_found(uint64_t bytes) KVKEEP_EXCLUDES(mu_);
  // Something is gone, or a charge was too high.
  void release(uint64_t bytes) KVKEEP_EXCLUDES(mu_);
  // Bytes of directories and service files, which are not given back by evicting blocks.
  void set_overhead(uint64_t bytes) KVKEEP_EXCLUDES(mu_);
  // One of these files was replaced by another.
  void replace_overhead(uint64_t before, uint64_t after) KVKEEP_EXCLUDES(mu_);

  // The limit in force. A lower one than what is used only keeps more from being charged.
  void set_limit(uint64_t bytes) KVKEEP_EXCLUDES(mu_);
  uint64_t limit() const KVKEEP_EXCLUDES(mu_);
  uint64_t headroom() const KVKEEP_EXCLUDES(mu_);
  // What everything tracked may take: the limit less the headroom.
  uint64_t usable() const KVKEEP_EXCLUDES(mu_);
  // The smallest limit under which `used` bytes fit.
  uint64_t limit_for(uint64_t used) const;
  uint64_t used() const KVKEEP_EXCLUDES(mu_);     // Overhead included.
  uint64_t tracked() const KVKEEP_EXCLUDES(mu_);  // used + reserved.

 private:
  uint64_t headroom_locked() const KVKEEP_REQUIRES(mu_);
  uint64_t usable_locked() const KVKEEP_REQUIRES(mu_);
  uint64_t used_locked() const KVKEEP_REQUIRES(mu_);
  bool charge_locked(uint64_t bytes) KVKEEP_REQUIRES(mu_);

  const uint64_t least_headroom_;
  mutable Mutex mu_;
  uint64_t limit_ KVKEEP_GUARDED_BY(mu_);
  uint64_t files_ KVKEEP_GUARDED_BY(mu_) = 0;
  uint64_t overhead_ KVKEEP_GUARDED_BY(mu_) = 0;
  uint64_t reserved_ KVKEEP_GUARDED_BY(mu_) = 0;
};

}  // namespace kvkeep
