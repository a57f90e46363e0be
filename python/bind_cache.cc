#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>
#include <utility>

#include "arguments.h"
#include "bindings.h"
#include "cache.h"
#include "cache_docs.h"
#include "layers.h"
#include "options.h"

namespace kvkeep::python {
namespace {

struct SaveArguments {
  nb::handle layers, token_count, model_name, layer_types, meta_states, parent, write_back;
};

BlockInput to_input(const SaveArguments& given, BorrowedArrays& arrays) {
  BlockInput input;
  input.layers = to_layers(given.layers, arrays);
  input.token_count = to_uint32(given.token_count, Where("token_count"));
  input.model_name = to_text(given.model_name, Where("model_name"));
  if (!given.layer_types.is_none()) {
    input.layer_types = to_texts(given.layer_types, Where("layer_types"));
  }
  if (!given.meta_states.is_none()) {
    input.meta_states = to_meta_states(given.meta_states, Where("meta_states"));
  }
  if (!given.parent.is_none()) input.parent = to_key(given.parent, Where("parent"));
  input.write_back = to_bool(given.write_back, Where("write_back"));
  return input;
}

// A refusal is an answer; a mistake in the arguments or a closed cache is an exception.
bool is_answer(const Status& status) {
  return status.refusal() && *status.refusal() != Refusal::kRefusedClosed &&
         status.code() != Code::kInvalidArgument;
}

nb::object save(const Cache& cache, nb::handle key, const SaveArguments& given) {
  const BlockHash hash = to_key(key, Where("key"));
  BorrowedArrays arrays;
  BlockInput input = to_input(given, arrays);
  const auto saved = without_gil([&] { return cache->save_block(hash, std::move(input)); });
  if (saved.ok()) return new_value("SaveResult", std::string(name_of(*saved)));
  const Status status = saved.status();
  if (!is_answer(status)) raise_status(status);
  return new_value("SaveResult", "refused", std::string(name_of(*status.refusal())),
                   status.message());
}

// A miss has a reason, and every reason but "closed" is an answer.
nb::object block_or_none(Result<LoadedBlock> loaded) {
  if (loaded.ok()) return from_block(*std::move(loaded));
  const Status status = loaded.status();
  const auto reason = status.miss_reason();
  if (!reason || *reason == MissReason::kClosed) raise_status(status);
  return nb::none();
}

nb::object load(const Cache& cache, nb::handle key, nb::handle promote) {
  const BlockHash hash = to_key(key, Where("key"));
  const bool keep = to_bool(promote, Where("promote"));
  return block_or_none(without_gil([&] { return cache->load_block_with_info(hash, keep); }));
}

nb::list load_batch(const Cache& cache, nb::handle keys, BatchMode mode) {
  const std::vector<BlockHash> hashes = to_keys(keys, Where("keys"));
  BatchResult results = without_gil([&] { return cache->load_blocks(hashes, mode); });
  nb::list blocks;
  for (auto& result : results) {
    nb::object block = block_or_none(std::move(result));
    if (block.is_none() && mode == BatchMode::kPrefix) break;
    blocks.append(std::move(block));
  }
  return blocks;
}

size_t preload(const Cache& cache, nb::handle keys) {
  const std::vector<BlockHash> hashes = to_keys(keys, Where("keys"));
  return without_gil([&] { return cache->preload(hashes); });
}

void bind_saves(nb::class_<Cache>& type) {
  type.def(
      "save",
      [](const Cache& cache, nb::handle key, nb::handle layers, nb::handle token_count,
         nb::handle model_name, nb::handle layer_types, nb::handle meta_states, nb::handle parent,
         nb::handle write_back) {
        return save(
            cache, key,
            {layers, token_count, model_name, layer_types, meta_states, parent, write_back});
      },
      nb::arg("key"), nb::arg("layers"), nb::kw_only(), nb::arg("token_count"),
      nb::arg("model_name") = "", nb::arg("layer_types") = nb::none(),
      nb::arg("meta_states") = nb::none(), nb::arg("parent") = nb::none(),
      nb::arg("write_back") = true, kSaveDoc);
}

void bind_loads(nb::class_<Cache>& type) {
  type.def("load", load, nb::arg("key"), nb::arg("promote") = true, kLoadDoc)
      .def(
          "load_many",
          [](const Cache& cache, nb::handle keys) {
            return load_batch(cache, keys, BatchMode::kPrefix);
          },
          nb::arg("keys"), kLoadManyDoc)
      .def(
          "load_each",
          [](const Cache& cache, nb::handle keys) {
            return load_batch(cache, keys, BatchMode::kEach);
          },
          nb::arg("keys"), kLoadEachDoc)
      .def("preload", preload, nb::arg("keys"), kPreloadDoc);
}

}  // namespace

void bind_cache(nb::module_& module) {
  nb::class_<Cache> type(module, "Cache", nb::is_weak_referenceable(),
                         "What kvkeep.BlockCache stands on.");
  type.def(
      "__init__",
      [](Cache* self, nb::handle path, const nb::dict& arguments) {
        new (self) Cache(to_options(path, arguments));
      },
      nb::arg("path").none(), nb::arg("arguments"));
  bind_saves(type);
  bind_loads(type);
  bind_questions(type);
  bind_stats(type);
  bind_upkeep(type);
}

}  // namespace kvkeep::python
