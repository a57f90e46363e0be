// DirtyBlocks: which blocks of the hot tier still have to be written, and when each is due.
//
// Threads: any thread. mu_ is a leaf lock.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "kvkeep/block_hash.h"

namespace kvkeep {

class DirtyBlocks {
 public:
  struct Item {
    BlockHash hash;
    Duration since{};  // clock.mono()
    Duration due{};
  };

  // `generation` of the block's stay in RAM, which is unique and grows.
  void add(uint64_t generation, Item item) KVKEEP_EXCLUDES(mu_);
  void remove(uint64_t generation) KVKEEP_EXCLUDES(mu_);
  // Its write failed: not before `due` again.
  void postpone(uint64_t generation, Duration due) KVKEEP_EXCLUDES(mu_);

  // Due at `now` or, without it, all; in the order in which they became dirty.
  std::vector<Item> due(std::optional<Duration> now) const KVKEEP_EXCLUDES(mu_);
  std::vector<BlockHash> all() const KVKEEP_EXCLUDES(mu_);
  // When the next one is due, if there is any.
  std::optional<Duration> next_due() const KVKEEP_EXCLUDES(mu_);
  size_t size() const KVKEEP_EXCLUDES(mu_);

 private:
  mutable Mutex mu_;
  std::map<uint64_t, Item> items_ KVKEEP_GUARDED_BY(mu_);  // By generation.
};

}  // namespace kvkeep
