// What a cache knows of its blocks without loading them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>

#include "arguments.h"
#include "bindings.h"
#include "cache.h"
#include "cache_docs.h"
#include "layers.h"

namespace kvkeep::python {
namespace {

bool contains(const Cache& cache, nb::handle key) {
  const BlockHash hash = to_key(key, Where("key"));
  return without_gil([&] { return cache->has_block(hash); });
}

std::string why(const Cache& cache, nb::handle key) {
  const BlockHash hash = to_key(key, Where("key"));
  const Explanation told = without_gil([&] { return cache->why(hash); });
  if (told.source) return std::string(name_of(*told.source));
  return std::string(name_of(told.reason.value_or(MissReason::kAbsent))) + ": " + told.text;
}

nb::object block_meta(const Cache& cache, nb::handle key) {
  const BlockHash hash = to_key(key, Where("key"));
  const auto meta = without_gil([&] { return cache->block_meta(hash); });
  if (!meta) return nb::none();
  nb::dict fields;
  fields["key"] = from_key(meta->hash);
  fields["path"] = meta->path;
  fields["file_size"] = meta->file_size;
  fields["created_at"] = meta->created_at;
  fields["last_access"] = meta->last_access;
  fields["num_layers"] = meta->info.num_layers;
  add_info(fields, meta->info);
  return nb::module_::import_("kvkeep._values").attr("BlockMeta")(**fields);
}

std::filesystem::path block_path(const Cache& cache, nb::handle key) {
  const BlockHash hash = to_key(key, Where("key"));
  return without_gil([&] { return cache->block_path(hash); });
}

nb::object expected_layout(const Cache& cache) {
  const ExpectedLayout expected = without_gil([&] { return cache->expected_layout(); });
  return new_value("ExpectedLayout", expected.model_name, expected.num_layers, expected.block_size,
                   expected.layer_types, expected.turboquant_bits);
}

std::string repr(const Cache& cache) {
  const std::string text = without_gil([&] { return cache->debug_string(); });
  return "kvkeep.BlockCache" + text.substr(std::min(text.find('('), text.size()));
}

}  // namespace

void bind_questions(nb::class_<Cache>& type) {
  type.def("why", why, nb::arg("key"), kWhyDoc)
      .def("block_meta", block_meta, nb::arg("key"), kBlockMetaDoc)
      .def("block_path", block_path, nb::arg("key"), kBlockPathDoc)
      .def("expected_layout", expected_layout, kExpectedLayoutDoc)
      .def_prop_ro(
          "pending_cap", [](const Cache& cache) { return cache->pending_cap(); },
          "Blocks that may wait to be written.")
      .def("__contains__", contains, nb::arg("key"),
           "True if a load would have found the block a moment ago. Memory only; touches nothing.")
      .def(
          "__len__", [](const Cache& cache) { return without_gil([&] { return cache->size(); }); },
          "Blocks that can be loaded.")
      .def("__repr__", repr);
}

}  // namespace kvkeep::python
