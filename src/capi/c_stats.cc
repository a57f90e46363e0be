#include <algorithm>

#include "capi/arguments.h"
#include "capi/handles.h"

namespace kvkeep::capi {
namespace {

std::unique_ptr<kvkeep_stats> snapshot_of(const TieredBlockCache& cache) {
  const CacheStats stats = cache.stats();
  auto snapshot = std::make_unique<kvkeep_stats>();
  const auto add = [&](std::string name, uint64_t value) {
    snapshot->figures.push_back({std::move(name), value});
  };
#define KVKEEP_X(name, help) add(#name, stats.name);
  KVKEEP_COUNTERS(KVKEEP_X)
  KVKEEP_GAUGES(KVKEEP_X)
#undef KVKEEP_X
#define KVKEEP_X(id, name, help) add("miss_reason." name, stats.missed(MissReason::id));
  KVKEEP_MISS_REASONS(KVKEEP_X)
#undef KVKEEP_X
#define KVKEEP_X(id, name, help) add("save_refused." name, stats.refused(Refusal::id));
  KVKEEP_REFUSALS(KVKEEP_X)
#undef KVKEEP_X
  snapshot->json = to_json(stats);
  return snapshot;
}

}  // namespace
}  // namespace kvkeep::capi

using kvkeep::Status;
using kvkeep::capi::fenced;
using kvkeep::capi::not_null;

kvkeep_status kvkeep_stats_read(kvkeep_cache* cache, kvkeep_stats** stats) {
  return fenced([&]() -> Status {
    KVKEEP_TRY(not_null(stats, "stats"));
    *stats = nullptr;
    KVKEEP_TRY(not_null(cache, "cache"));
    *stats = kvkeep::capi::snapshot_of(*cache->cache).release();
    return {};
  });
}

kvkeep_status kvkeep_stats_get(const kvkeep_stats* stats, const char* name, uint64_t* value) {
  return fenced([&]() -> Status {
    KVKEEP_TRY(not_null(value, "value"));
    *value = 0;
    KVKEEP_TRY(not_null(stats, "stats"));
    KVKEEP_TRY(not_null(name, "name"));
    const auto& all = stats->figures;
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& f) { return f.name == name; });
    if (found == all.end()) {
      return Status(kvkeep::Code::kNotFound, "no figure has the name " + std::string(name));
    }
    *value = found->value;
    return {};
  });
}

size_t kvkeep_stats_count(const kvkeep_stats* stats) {
  return stats != nullptr ? stats->figures.size() : 0;
}

const char* kvkeep_stats_name(const kvkeep_stats* stats, size_t index) {
  return index < kvkeep_stats_count(stats) ? stats->figures[index].name.c_str() : "";
}

uint64_t kvkeep_stats_value(const kvkeep_stats* stats, size_t index) {
  return index < kvkeep_stats_count(stats) ? stats->figures[index].value : 0;
}

const char* kvkeep_stats_json(const kvkeep_stats* stats) {
  return stats != nullptr ? stats->json.c_str() : "";
}

void kvkeep_stats_free(kvkeep_stats* stats) { delete stats; }
