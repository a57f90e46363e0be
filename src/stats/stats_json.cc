#include <nlohmann/json.hpp>

#include "kvkeep/stats.h"

namespace kvkeep {
namespace {

nlohmann::ordered_json times_json(const LoadTimes& times) {
  return {{"count", times.count},
          {"total_ns", times.total_ns},
          {"bounds_us", LoadTimes::kBoundsMicros},
          {"buckets", times.buckets}};
}

}  // namespace

std::string to_json(const CacheStats& stats) {
  nlohmann::ordered_json out;
#define KVKEEP_X(name, help) out[#name] = stats.name;
  KVKEEP_COUNTERS(KVKEEP_X)
  KVKEEP_GAUGES(KVKEEP_X)
#undef KVKEEP_X
  for (size_t i = 0; i < kMissReasonCount; ++i) {
    out["miss_reason"][std::string(name_of(static_cast<MissReason>(i)))] = stats.miss_reason[i];
  }
  for (size_t i = 0; i < kRefusalCount; ++i) {
    out["save_refused"][std::string(name_of(static_cast<Refusal>(i)))] = stats.save_refused[i];
  }
  for (size_t i = 0; i < kSourceCount; ++i) {
    out["load_times"][std::string(name_of(static_cast<Source>(i)))] =
        times_json(stats.load_times[i]);
  }
  return out.dump();
}

}  // namespace kvkeep
