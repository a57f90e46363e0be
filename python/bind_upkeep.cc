// What a cache does for its owner beside saving and loading: letting blocks go, writing, closing.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>
#include <utility>

#include "arguments.h"
#include "bindings.h"
#include "cache.h"
#include "cache_docs.h"

namespace kvkeep::python {
namespace {

bool remove(const Cache& cache, nb::handle key, nb::handle force) {
  const BlockHash hash = to_key(key, Where("key"));
  const bool forced = to_bool(force, Where("force"));
  return value_or_raise(without_gil([&] { return cache->delete_block(hash, forced); }));
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
  type.def("delete", remove, nb::arg("key"), nb::arg("force") = false, kDeleteDoc)
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
      .def("close", close, nb::arg("timeout") = nb::none(), kCloseDoc);
}

}  // namespace kvkeep::python
