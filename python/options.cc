#include "options.h"

#include <nanobind/stl/string.h>

#include <string>
#include <string_view>

#include "arguments.h"
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

struct Row {
  std::string_view name;
  void (*set)(Options&, nb::handle value, const Where&);
};

// None leaves an option at its default.
constexpr Row kRows[] = {
    {"max_size",
     [](Options& o, nb::handle v, const Where& w) { o.max_size_bytes = to_size(v, w); }},
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
    {"queue_wait",
     [](Options& o, nb::handle v, const Where& w) { o.queue_wait = to_duration(v, w); }},
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

Options to_options(const nb::bytes& path, const nb::dict& arguments) {
  Options options;
  options.cache_dir = std::string(path.c_str(), path.size());
  for (const auto& [key, value] : arguments) {
    const std::string name = nb::cast<std::string>(key);
    if (!value.is_none()) row_of(name).set(options, value, Where(name));
  }
  return options;
}

}  // namespace kvkeep::python
