// What a cache counts, as dicts.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>

#include <string>

#include "arguments.h"
#include "bindings.h"
#include "cache.h"
#include "cache_docs.h"

namespace kvkeep::python {
namespace {

nb::dict load_times(const CacheStats& snapshot) {
  nb::dict by_source;
  for (size_t i = 0; i < kSourceCount; ++i) {
    const LoadTimes& times = snapshot.load_times[i];
    nb::dict entry;
    entry["count"] = times.count;
    entry["total_ns"] = times.total_ns;
    entry["bounds_us"] = nb::cast(LoadTimes::kBoundsMicros);
    entry["buckets"] = nb::cast(times.buckets);
    by_source[nb::cast(std::string(name_of(static_cast<Source>(i))))] = entry;
  }
  return by_source;
}

nb::dict stats(const Cache& cache) {
  const CacheStats snapshot = without_gil([&] { return cache->stats(); });
  nb::dict all;
#define KVKEEP_X(name, help) all[#name] = snapshot.name;
  KVKEEP_COUNTERS(KVKEEP_X)
  KVKEEP_GAUGES(KVKEEP_X)
#undef KVKEEP_X
  nb::dict misses;
#define KVKEEP_X(id, name, help) misses[name] = snapshot.missed(MissReason::id);
  KVKEEP_MISS_REASONS(KVKEEP_X)
#undef KVKEEP_X
  nb::dict refusals;
#define KVKEEP_X(id, name, help) refusals[name] = snapshot.refused(Refusal::id);
  KVKEEP_REFUSALS(KVKEEP_X)
#undef KVKEEP_X
  all["miss_reason"] = misses;
  all["save_refused"] = refusals;
  all["load_times"] = load_times(snapshot);
  return all;
}

nb::dict stats_for_model(const Cache& cache, nb::handle model_name) {
  const std::string name = to_text(model_name, Where("model_name"));
  const ModelStats model = without_gil([&] { return cache->stats_for_model(name); });
  nb::dict all;
  all["model_name"] = model.model_name;
  all["num_files"] = model.num_files;
  all["total_size_bytes"] = model.total_size_bytes;
  all["hot_cache_entries"] = model.hot_cache_entries;
  all["hot_cache_size_bytes"] = model.hot_cache_size_bytes;
  all["max_size_bytes"] = model.max_size_bytes;
  all["hot_cache_max_bytes"] = model.hot_cache_max_bytes;
  return all;
}

}  // namespace

void bind_stats(nb::class_<Cache>& type) {
  type.def("stats", stats, kStatsDoc)
      .def("stats_for_model", stats_for_model, nb::arg("model_name"), kStatsForModelDoc);
}

}  // namespace kvkeep::python
