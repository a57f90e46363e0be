// The live counters behind CacheStats.
//
// Related counters are added in one call, so that a snapshot never shows a hit without its load.
//
// Threads: any thread. mu_ is a leaf lock.
#pragma once

#include <initializer_list>

#include "base/mutex.h"
#include "kvkeep/stats.h"

namespace kvkeep {

class Stats {
 public:
  using Counter = uint64_t CacheStats::*;
  struct Delta {
    Counter counter;
    uint64_t amount = 1;
  };

  void add(std::initializer_list<Delta> deltas) KVKEEP_EXCLUDES(mu_);
  void add(Counter counter, uint64_t amount = 1) KVKEEP_EXCLUDES(mu_) { add({{counter, amount}}); }
  // A load that returned a block, `ns` nanoseconds after it was called.
  void add_load(Source source, uint64_t ns, std::initializer_list<Delta> deltas)
      KVKEEP_EXCLUDES(mu_);
  // A lookup that ended without a block. "Not found at all" also counts a miss of the seed's kind.
  void add_miss(MissReason reason, std::initializer_list<Delta> also = {}) KVKEEP_EXCLUDES(mu_);
  void add_refusal(Refusal reason, std::initializer_list<Delta> also = {}) KVKEEP_EXCLUDES(mu_);

  // The counters; gauges are 0 and for the caller to fill in.
  CacheStats snapshot() const KVKEEP_EXCLUDES(mu_);

 private:
  void apply(std::initializer_list<Delta> deltas) KVKEEP_REQUIRES(mu_);

  mutable Mutex mu_;
  CacheStats counters_ KVKEEP_GUARDED_BY(mu_);
};

}  // namespace kvkeep
