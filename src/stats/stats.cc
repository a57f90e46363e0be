#include "stats/stats.h"

#include <algorithm>

namespace kvkeep {

void LoadTimes::add(uint64_t ns) {
  const auto bound =
      std::lower_bound(kBoundsMicros.begin(), kBoundsMicros.end(), (ns + 999) / 1000);
  ++buckets[static_cast<size_t>(bound - kBoundsMicros.begin())];
  ++count;
  total_ns += ns;
}

double CacheStats::utilization() const {
  if (max_size_bytes == 0) return 0;
  return static_cast<double>(total_size_bytes) / static_cast<double>(max_size_bytes);
}

void Stats::add(std::initializer_list<Delta> deltas) {
  MutexLock lock(mu_);
  apply(deltas);
}

void Stats::add_load(Source source, uint64_t ns, std::initializer_list<Delta> deltas) {
  MutexLock lock(mu_);
  counters_.load_times[static_cast<size_t>(source)].add(ns);
  apply(deltas);
}

void Stats::add_miss(MissReason reason, std::initializer_list<Delta> also) {
  MutexLock lock(mu_);
  ++counters_.lookups;
  ++counters_.load_misses;
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
