#include <cstdio>

#include "kvkeep/stats.h"

namespace kvkeep {
namespace {

void add_header(std::string& out, const std::string& name, const char* type, const char* help) {
  out += "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

void add_counter(std::string& out, const char* name, const char* help, uint64_t value) {
  const std::string full = "kvkeep_" + std::string(name) + "_total";
  add_header(out, full, "counter", help);
  out += full + " " + std::to_string(value) + "\n";
}

void add_gauge(std::string& out, const char* name, const char* help, uint64_t value) {
  const std::string full = "kvkeep_" + std::string(name);
  add_header(out, full, "gauge", help);
  out += full + " " + std::to_string(value) + "\n";
}

template <typename Reason, size_t N>
void add_reasons(std::string& out, const char* name, const char* help,
                 const std::array<uint64_t, N>& counts) {
  const std::string full = "kvkeep_" + std::string(name) + "_total";
  add_header(out, full, "counter", help);
  for (size_t i = 0; i < N; ++i) {
    out += full + "{reason=\"" + std::string(name_of(static_cast<Reason>(i))) + "\"} " +
           std::to_string(counts[i]) + "\n";
  }
}

std::string seconds(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

// Buckets are cumulative there.
void add_times(std::string& out, Source source, const LoadTimes& times) {
  const std::string label = "source=\"" + std::string(name_of(source)) + "\"";
  uint64_t sum = 0;
  for (size_t i = 0; i < times.buckets.size(); ++i) {
    sum += times.buckets[i];
    const bool last = i == LoadTimes::kBoundsMicros.size();
    const std::string bound =
        last ? "+Inf" : seconds(static_cast<double>(LoadTimes::kBoundsMicros[i]) / 1e6);
    out += "kvkeep_load_seconds_bucket{" + label + ",le=\"" + bound + "\"} " + std::to_string(sum) +
           "\n";
  }
  out += "kvkeep_load_seconds_sum{" + label + "} " +
         seconds(static_cast<double>(times.total_ns) / 1e9) + "\n";
  out += "kvkeep_load_seconds_count{" + label + "} " + std::to_string(times.count) + "\n";
}

}  // namespace

std::string to_prometheus(const CacheStats& stats) {
  std::string out;
#define KVKEEP_X(name, help) add_counter(out, #name, help, stats.name);
  KVKEEP_COUNTERS(KVKEEP_X)
#undef KVKEEP_X
#define KVKEEP_X(name, help) add_gauge(out, #name, help, stats.name);
  KVKEEP_GAUGES(KVKEEP_X)
#undef KVKEEP_X
  add_reasons<MissReason>(out, "miss_reason", "loads that returned nothing, by reason",
                          stats.miss_reason);
  add_reasons<Refusal>(out, "save_refused", "saves that were refused or lost, by reason",
                       stats.save_refused);
  add_header(out, "kvkeep_load_seconds", "histogram", "time from the call to the block, by source");
  for (size_t i = 0; i < kSourceCount; ++i) {
    add_times(out, static_cast<Source>(i), stats.load_times[i]);
  }
  return out;
}

}  // namespace kvkeep
