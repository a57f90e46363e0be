#include "options.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "arguments.h"
#include "budget.h"
#include "errors.h"

namespace kvkeep::python {
namespace {

Durability to_durability(nb::handle value, const Where& where) {
  const std::string name = to_text(value, where);
  if (name == "none") return Durability::kNone;
  if (name == "data") return Durability::kData;
  if (name == "data+dir") return Durability::kDataAndDir;
  raise_invalid(where, "expected 'none', 'data' or 'data+dir', got '" + name + "'");
}

Eviction to_eviction(nb::handle value, const Where& where) {
  const std::string name = to_text(value, where);
  if (name == "leaf_first_lru") return Eviction::kLeafFirstLru;
  if (name == "lru") return Eviction::kLru;
  raise_invalid(where, "expected 'leaf_first_lru' or 'lru', got '" + name + "'");
}

constexpr uint64_t kAutoHotAtMost = 1ull << 30;
constexpr uint64_t kAutoHotOfUnknownRam = 256ull << 20;

// 5 % of the RAM: enough for the blocks of the last prompts, and not missed by anybody.
uint64_t auto_hot_size() {
  const auto system = system_info();
  const Result<int64_t> page = system->page_size();
  const Result<int64_t> pages = system->physical_pages();
  if (!page.ok() || !pages.ok()) return kAutoHotOfUnknownRam;
  return std::min(kAutoHotAtMost,
                  static_cast<uint64_t>(*page) * static_cast<uint64_t>(*pages) / 20);
}

uint64_t to_hot_size(nb::handle value, const Where& where) {
  if (PyUnicode_Check(value.ptr()) && to_text(value, where) == "auto") return auto_hot_size();
  return to_size(value, where);
}

std::shared_ptr<HotBudget> to_budget(nb::handle value, const Where& where) {
  if (!nb::isinstance<Budget>(value)) {
    raise_type_error(where, "expected a kvkeep.HotBudget, got " + type_of(value));
  }
  return nb::cast<const Budget&>(value).shared;
}

std::optional<Duration> to_duration_or_never(nb::handle value, const Where& where) {
  if (value.is_none()) return std::nullopt;
  return to_duration(value, where);
}

struct Row {
  std::string_view name;
  void (*set)(Options&, nb::handle value, const Where&);
  bool takes_none = false;
};

// None leaves an option at its default, unless the row takes it.
constexpr Row kRows[] = {
    {"max_size",
     [](Options& o, nb::handle v, const Where& w) { o.max_size_bytes = to_size(v, w); }},
    {"hot_size",
     [](Options& o, nb::handle v, const Where& w) { o.hot_max_bytes = to_hot_size(v, w); }},
    {"budget", [](Options& o, nb::handle v, const Where& w) { o.budget = to_budget(v, w); }},
    {"hot_only", [](Options& o, nb::handle v, const Where& w) { o.hot_only = to_bool(v, w); }},
    {"write_back", [](Options& o, nb::handle v, const Where& w) { o.write_back = to_bool(v, w); }},
    {"flush_after",
     [](Options& o, nb::handle v, const Where& w) { o.flush_after = to_duration_or_never(v, w); },
     true},
    {"preload_min_blocks",
     [](Options& o, nb::handle v, const Where& w) { o.preload_min_blocks = to_uint32(v, w); }},
    {"preload_max_workers",
     [](Options& o, nb::handle v, const Where& w) { o.preload_max_workers = to_uint32(v, w); }},
    {"model_name", [](Options& o, nb::handle v, const Where& w) { o.model_name = to_text(v, w); }},
    {"num_layers",
     [](Options& o, nb::handle v, const Where& w) { o.num_layers = to_uint32(v, w); }},
    {"block_size",
     [](Options& o, nb::handle v, const Where& w) { o.block_size = to_uint32(v, w); }},
    {"layer_types",
     [](Options& o, nb::handle v, const Where& w) { o.layer_types = to_texts(v, w); }},
    {"identity", [](Options& o, nb::handle v, const Where& w) { o.identity = to_text_map(v, w); }},
    {"durability",
     [](Options& o, nb::handle v, const Where& w) { o.durability = to_durability(v, w); }},
    {"require_digest",
     [](Options& o, nb::handle v, const Where& w) { o.require_digest = to_bool(v, w); }},
    {"ram_max", [](Options& o, nb::handle v, const Where& w) { o.ram_max_bytes = to_size(v, w); }},
    {"quarantine_max",
     [](Options& o, nb::handle v, const Where& w) { o.quarantine_max_bytes = to_size(v, w); }},
    {"pending_cap",
     [](Options& o, nb::handle v, const Where& w) { o.pending_cap = to_uint32(v, w); }},
    {"block_size_tokens",
     [](Options& o, nb::handle v, const Where& w) { o.block_size_tokens = to_uint32(v, w); }},
    {"kv_bytes_per_token",
     [](Options& o, nb::handle v, const Where& w) { o.kv_bytes_per_token = to_size(v, w); }},
    {"queue_wait",
     [](Options& o, nb::handle v, const Where& w) { o.queue_wait = to_duration(v, w); }},
    {"io_deadline",
     [](Options& o, nb::handle v, const Where& w) { o.io_deadline = to_duration(v, w); }},
    {"min_free",
     [](Options& o, nb::handle v, const Where& w) { o.min_free_bytes = to_size(v, w); }},
    {"eviction", [](Options& o, nb::handle v, const Where& w) { o.eviction = to_eviction(v, w); }},
    {"background_reclaim",
     [](Options& o, nb::handle v, const Where& w) { o.background_reclaim = to_double(v, w); }},
    {"reconcile_interval",
     [](Options& o, nb::handle v, const Where& w) { o.reconcile_interval = to_duration(v, w); }},
    {"close_deadline",
     [](Options& o, nb::handle v, const Where& w) { o.close_deadline = to_duration(v, w); }},
};

const Row& row_of(const std::string& name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row;
  }
  raise_type_error(Where(name), "no such option");
}

}  // namespace

Options to_options(nb::handle path, const nb::dict& arguments) {
  Options options;
  if (!path.is_none()) {
    const auto bytes = nb::cast<nb::bytes>(path);
    options.cache_dir = std::string(bytes.c_str(), bytes.size());
  }
  for (const auto& [key, value] : arguments) {
    const std::string name = nb::cast<std::string>(key);
    const Row& row = row_of(name);
    if (!value.is_none() || row.takes_none) row.set(options, value, Where(name));
  }
  return options;
}

}  // namespace kvkeep::python
