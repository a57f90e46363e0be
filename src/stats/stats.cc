#include "stats/stats.h"

namespace kvkeep {

void Stats::add(std::initializer_list<Delta> deltas) {
  MutexLock lock(mu_);
  apply(deltas);
}

void Stats::add_miss(MissReason reason, std::initializer_list<Delta> also) {
  MutexLock lock(mu_);
  ++counters_.lookups;
  ++counters_.miss_reason[static_cast<size_t>(reason)];
  apply(also);
}

void Stats::add_refusal(Refusal reason, std::initializer_list<Delta> also) {
  MutexLock lock(mu_);
  ++counters_.save_refused[static_cast<size_t>(reason)];
  apply(also);
}

CacheStats Stats::snapshot() const {
  MutexLock lock(mu_);
  return counters_;
}

void Stats::apply(std::initializer_list<Delta> deltas) {
  for (const Delta& delta : deltas) counters_.*delta.counter += delta.amount;
}

}  // namespace kvkeep
