// What a cache does for its owner beside saving and loading: letting blocks go, writing, counting,
// closing.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "arguments.h"
#include "bindings.h"
#include "cache.h"
#include "cache_docs.h"

namespace kvkeep::python {
namespace {

bool remove(const Cache& cache, nb::handle key) {
  const BlockHash hash = to_key(key, Where("key"));
  return value_or_raise(without_gil([&] { return cache->delete_block(hash); }));
}

bool report_bad(const Cache& cache, nb::handle key) {
  const BlockHash hash = to_key(key, Where("key"));
  return value_or_raise(without_gil([&] { return cache->report_bad(hash); }));
}

bool forget(const Cache& cache, nb::handle key) {
  const BlockHash hash = to_key(key, Where("key"));
  return without_gil([&] { return cache->forget_block(hash); });
}

size_t clear_hot(const Cache& cache, nb::handle spill) {
  const HotClear how = to_bool(spill, Where("spill")) ? HotClear::kSpill : HotClear::kDiscard;
  return without_gil([&] { return cache->clear_hot(how); });
}

uint64_t shrink_hot_to(const Cache& cache, nb::handle size, nb::handle keep) {
  const uint64_t bytes = to_size(size, Where("size"));
  const HashSet kept = to_key_set(keep, Where("keep"));
  return without_gil([&] { return cache->shrink_hot_to(bytes, kept); });
}

std::optional<Duration> to_limit(nb::handle timeout) {
  if (timeout.is_none()) return std::nullopt;
  return to_duration(timeout, Where("timeout"));
}

nb::object flush(const Cache& cache, nb::handle timeout) {
  const auto limit = to_limit(timeout);
  const FlushReport report = value_or_raise(interruptible([cache = cache.share(), limit]() mutable {
    const auto held = std::move(cache);
    return held->flush(limit);
  }));
  return new_value("FlushReport", report.flushed, from_keys(report.failed));
}

nb::object close(const Cache& cache, nb::handle timeout) {
  const auto limit = to_limit(timeout);
  const CloseReport report = value_or_raise(interruptible([cache = cache.share(), limit]() mutable {
    const auto held = std::move(cache);
    return held->close(limit);
  }));
  return new_value("CloseReport", report.flushed, from_keys(report.failed),
                   from_keys(report.abandoned));
}

size_t clear(const Cache& cache) {
  return value_or_raise(without_gil([&] { return cache->clear(); }));
}

uint64_t enforce_size_limit(const Cache& cache) {
  return without_gil([&] { return cache->enforce_size_limit(); });
}

nb::object make_room(const Cache& cache, nb::handle incoming, nb::handle max_unlinks,
                     nb::handle unbounded) {
  const uint64_t bytes = to_size(incoming, Where("incoming"));
  std::optional<size_t> unlinks;
  if (!max_unlinks.is_none()) unlinks = to_uint32(max_unlinks, Where("max_unlinks"));
  const bool all = to_bool(unbounded, Where("unbounded"));
  const EvictionReport report = without_gil([&] { return cache->make_room(bytes, unlinks, all); });
  return new_value("EvictionReport", report.evicted, report.failed, report.deferred_bytes);
}

void set_max_size(const Cache& cache, nb::handle max_size) {
  const uint64_t bytes = to_size(max_size, Where("max_size"));
  without_gil([&] { cache->set_configured_max_size(bytes); });
}

void set_hot_size(const Cache& cache, nb::handle hot_size) {
  const uint64_t bytes = to_size(hot_size, Where("hot_size"));
  without_gil([&] { cache->set_hot_max_bytes(bytes); });
}

bool adopt_layer_types(const Cache& cache, nb::handle types) {
  const std::vector<std::string> names = to_texts(types, Where("layer_types"));
  return without_gil([&] { return cache->adopt_layer_types(names); });
}

bool set_expected_layer_types(const Cache& cache, nb::handle types, nb::handle bits) {
  const std::vector<std::string> names = to_texts(types, Where("layer_types"));
  std::optional<double> depth;
  if (!bits.is_none()) depth = to_double(bits, Where("turboquant_bits"));
  return without_gil([&] { return cache->set_expected_layer_types(names, depth); });
}

size_t sweep_stale_layouts(const Cache& cache) {
  return without_gil([&] { return cache->sweep_stale_layouts(); });
}

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

std::string repr(const Cache& cache) {
  const std::string text = without_gil([&] { return cache->debug_string(); });
  return "kvkeep.BlockCache" + text.substr(std::min(text.find('('), text.size()));
}

}  // namespace

namespace {

void bind_limits(nb::class_<Cache>& type) {
  type.def("clear", clear, kClearDoc)
      .def("enforce_size_limit", enforce_size_limit, kEnforceDoc)
      .def("make_room", make_room, nb::arg("incoming"), nb::arg("max_unlinks") = nb::none(),
           nb::arg("unbounded") = false, kMakeRoomDoc)
      .def("set_max_size", set_max_size, nb::arg("max_size"), kSetMaxSizeDoc)
      .def("set_hot_size", set_hot_size, nb::arg("hot_size"), kSetHotSizeDoc);
}

}  // namespace

void bind_upkeep(nb::class_<Cache>& type) {
  bind_limits(type);
  type.def("delete", remove, nb::arg("key"), kDeleteDoc)
      .def("forget", forget, nb::arg("key"), kForgetDoc)
      .def("report_bad", report_bad, nb::arg("key"), kReportBadDoc)
      .def("clear_hot", clear_hot, nb::arg("spill") = true, kClearHotDoc)
      .def("shrink_hot_to", shrink_hot_to, nb::arg("size"), nb::arg("keep") = nb::make_tuple(),
           kShrinkHotDoc)
      .def("adopt_layer_types", adopt_layer_types, nb::arg("layer_types"), kAdoptDoc)
      .def("set_expected_layer_types", set_expected_layer_types, nb::arg("layer_types"),
           nb::arg("turboquant_bits") = nb::none(), kExpectDoc)
      .def("sweep_stale_layouts", sweep_stale_layouts, kSweepDoc)
      .def("flush", flush, nb::arg("timeout") = nb::none(), kFlushDoc)
      .def("close", close, nb::arg("timeout") = nb::none(), kCloseDoc)
      .def("stats", stats,
           "A snapshot of all counters as a dict.\n\nmiss_reason and save_refused are dicts by "
           "reason, load_times by source: count, total_ns, and a\nhistogram: buckets[i] loads took "
           "at "
           "most bounds_us[i] microseconds, the last took longer.")
      .def("__repr__", repr);
}

}  // namespace kvkeep::python
