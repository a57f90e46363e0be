#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <string>
#include <utility>

#include "arguments.h"
#include "bindings.h"
#include "cache.h"
#include "key_arguments.h"
#include "layers.h"
#include "prefix_docs.h"
#include "prefixes.h"
#include "token_ids.h"

namespace kvkeep::python {
namespace {

PartialTails to_tails(nb::handle object) {
  const Where where("partial_tails");
  const std::string text = to_text(object, where);
  if (text == "none") return PartialTails::kNone;
  if (text == "hot") return PartialTails::kHotOnly;
  if (text == "all") return PartialTails::kAll;
  raise_invalid(where, "expected 'none', 'hot' or 'all', got '" + text + "'");
}

struct OpenArguments {
  nb::handle block_size, fields, recipe, partial_tails, max_blocks, lease;
};

PrefixesPtr open(const Cache& cache, const OpenArguments& given) {
  PrefixOptions options;
  if (!given.fields.is_none()) options.fields = to_text_map(given.fields, Where("fields"));
  options.recipe = to_recipe(given.recipe);
  options.partial_tails = to_tails(given.partial_tails);
  options.lease = to_duration(given.lease, Where("lease"));
  const uint32_t block_size = to_uint32(given.block_size, Where("block_size"));
  const uint32_t max_blocks = to_uint32(given.max_blocks, Where("max_blocks"));
  if (max_blocks == 0) raise_invalid(Where("max_blocks"), "must be at least 1");
  return value_or_raise(Prefixes::open(cache.share(), block_size, max_blocks, std::move(options)));
}

// A prompt and what it refers to.
class PromptArgument {
 public:
  PromptArgument(nb::handle tokens, nb::handle salt, nb::handle extras)
      : tokens_(to_token_ids(tokens, Where("tokens"))), salt_(to_text(salt, Where("salt"))) {
    if (extras.is_none()) return;
    const Where where("extras");
    const nb::object ranges = to_list(extras, where, "a sequence of (start, extras)");
    for (nb::handle range : ranges) {
      const Where at = where.at(extras_.size());
      const nb::object pair = to_list(range, at, "(start, extras)");
      if (nb::len(pair) != 2) raise_type_error(at, "expected (start, extras)");
      extras_.push_back(
          {to_uint32(nb::object(pair[0]), at.at(0)), to_extras(nb::object(pair[1]), at.at(1))});
    }
  }
  Prompt view() const { return {tokens_, salt_, extras_}; }

 private:
  std::vector<uint32_t> tokens_;
  std::string salt_;
  std::vector<ExtraRange> extras_;
};

Match match(const PrefixesPtr& self, nb::handle tokens, nb::handle salt, nb::handle extras) {
  const PromptArgument prompt(tokens, salt, extras);
  return {self, value_or_raise(without_gil([&] { return (*self)->match(prompt.view()); }))};
}

std::string why(const PrefixesPtr& self, nb::handle tokens, nb::handle salt, nb::handle extras) {
  const PromptArgument prompt(tokens, salt, extras);
  return value_or_raise(without_gil([&] { return (*self)->why(prompt.view()); }));
}

LoadedPtr load(const PrefixesPtr& self, const Match& match) {
  return without_gil(
      [&] { return std::make_shared<const LoadedPrefix>((*self)->load(match.match)); });
}

struct StoreArguments {
  nb::handle layers, layer_types, meta_states, first_token, snapshots;
};

Snapshot to_snapshot(nb::handle object, const Where& where, BorrowedArrays& arrays) {
  const nb::object parts = to_list(object, where, "(tokens, layers, meta_states)");
  if (nb::len(parts) != 3) raise_type_error(where, "expected (tokens, layers, meta_states)");
  Snapshot snapshot;
  snapshot.tokens = to_uint32(nb::object(parts[0]), where.at(0));
  snapshot.layers = to_layers(nb::object(parts[1]), arrays);
  const nb::object meta = parts[2];
  if (!meta.is_none()) snapshot.meta_states = to_meta_states(meta, where.at(2));
  return snapshot;
}

nb::object store(const PrefixesPtr& self, const PromptArgument& prompt,
                 const StoreArguments& given) {
  BorrowedArrays arrays;
  PromptState state;
  state.layers = to_layers(given.layers, arrays);
  state.layer_types = to_texts(given.layer_types, Where("layer_types"));
  if (!given.meta_states.is_none())
    state.meta_states = to_meta_states(given.meta_states, Where("meta_states"));
  state.first_token = to_uint32(given.first_token, Where("first_token"));
  std::vector<Snapshot> snapshots;
  const Where where("snapshots");
  const nb::object list = to_list(given.snapshots, where, "a sequence of snapshots");
  for (nb::handle item : list) {
    snapshots.push_back(to_snapshot(item, where.at(snapshots.size()), arrays));
  }
  const StoreReport report =
      value_or_raise(without_gil([&] { return (*self)->store(prompt.view(), state, snapshots); }));
  nb::object refused = nb::none();
  if (!report.refused.ok()) {
    const auto reason = report.refused.refusal();
    refused = nb::cast(reason ? std::string(name_of(*reason))
                              : std::string(name_of(report.refused.code())));
  }
  return new_value("StoreReport", report.tokens, report.stored_blocks, report.present_blocks,
                   refused, report.refused.message());
}

nb::object reason_of(const std::optional<MissReason>& end) {
  return end ? nb::cast(std::string(name_of(*end))) : nb::none();
}

nb::list blocks_of(const Match& match) {
  nb::list blocks;
  for (const MatchedBlock& block : match.match.blocks) {
    blocks.append(
        nb::make_tuple(from_key(block.key), block.tokens, std::string(name_of(block.source))));
  }
  return blocks;
}

nb::list loaded_blocks(const LoadedPtr& prefix) {
  nb::list blocks;
  for (const LoadedBlock& block : prefix->blocks) blocks.append(from_block(block));
  return blocks;
}

nb::list joined_layer(const LoadedPtr& prefix, nb::handle layer) {
  const uint32_t index = to_uint32(layer, Where("layer"));
  std::vector<JoinedTensor> tensors =
      value_or_raise(join_layer(prefix->blocks, index, prefix->tokens));
  nb::list joined;
  for (JoinedTensor& tensor : tensors) joined.append(nb::cast(Joined{prefix, std::move(tensor)}));
  return joined;
}

void copy_into(const Joined& joined, nb::handle destination) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(destination.ptr(), &buffer, PyBUF_WRITABLE) != 0) throw nb::python_error();
  const uint64_t bytes = static_cast<uint64_t>(buffer.len);
  if (bytes == joined.tensor.bytes) {
    without_gil([&] { copy_joined(joined.tensor, {static_cast<std::byte*>(buffer.buf), bytes}); });
  }
  PyBuffer_Release(&buffer);
  if (bytes == joined.tensor.bytes) return;
  raise_invalid(Where("buffer"), "has " + std::to_string(bytes) + " bytes; the tensor has " +
                                     std::to_string(joined.tensor.bytes));
}

template <typename Numbers>
nb::tuple tuple_of(const Numbers& numbers) {
  nb::list items;
  for (const auto number : numbers) items.append(number);
  return nb::tuple(items);
}

void bind_match(nb::module_& module) {
  nb::class_<Match>(module, "PrefixMatch", kMatchDoc)
      .def_prop_ro("tokens", [](const Match& self) { return self.match.tokens; })
      .def_prop_ro("blocks", blocks_of)
      .def_prop_ro("reason", [](const Match& self) { return reason_of(self.match.end); })
      .def_prop_ro("text", [](const Match& self) { return self.match.text; })
      .def(
          "release", [](Match& self) { self.match.table.hold.reset(); }, kReleaseDoc)
      .def("__enter__", [](nb::object self) { return self; })
      .def(
          "__exit__",
          [](Match& self, nb::handle, nb::handle, nb::handle) { self.match.table.hold.reset(); },
          nb::arg("kind").none(), nb::arg("error").none(), nb::arg("trace").none());
}

void bind_loaded(nb::module_& module) {
  nb::class_<Joined>(module, "JoinedTensor", kJoinedDoc)
      .def_prop_ro("path", [](const Joined& self) { return tuple_of(self.tensor.path); })
      .def_prop_ro("dtype",
                   [](const Joined& self) { return std::string(name_of(self.tensor.dtype)); })
      .def_prop_ro("shape", [](const Joined& self) { return tuple_of(self.tensor.shape); })
      .def_prop_ro("nbytes", [](const Joined& self) { return self.tensor.bytes; })
      .def("copy_into", copy_into, nb::arg("buffer"), kCopyIntoDoc);
  nb::class_<LoadedPrefix>(module, "LoadedPrefix", kLoadedDoc)
      .def_prop_ro("tokens", [](const LoadedPtr& self) { return self->tokens; })
      .def_prop_ro("blocks", loaded_blocks)
      .def_prop_ro("reason", [](const LoadedPtr& self) { return reason_of(self->end); })
      .def("joined", joined_layer, nb::arg("layer"), kJoinDoc);
}

}  // namespace

void bind_prefix(nb::module_& module) {
  bind_match(module);
  bind_loaded(module);
  nb::class_<Prefixes>(module, "PrefixCache", kPrefixCacheDoc)
      .def(nb::new_([](const Cache& cache, nb::handle block_size, nb::handle fields,
                       nb::handle recipe, nb::handle partial_tails, nb::handle max_blocks,
                       nb::handle lease) {
             return open(cache, {block_size, fields, recipe, partial_tails, max_blocks, lease});
           }),
           nb::arg("cache"), nb::kw_only(), nb::arg("block_size"), nb::arg("fields") = nb::none(),
           nb::arg("recipe") = "kvkeep-1", nb::arg("partial_tails") = "hot",
           nb::arg("max_blocks") = 100'000, nb::arg("lease") = 60.0)
      .def_prop_ro("block_size", [](const PrefixesPtr& self) { return self->block_size(); })
      .def("match", match, nb::arg("tokens"), nb::kw_only(), nb::arg("salt") = "",
           nb::arg("extras") = nb::none(), kPrefixMatchDoc)
      .def("load", load, nb::arg("match"), kPrefixLoadDoc)
      .def(
          "store",
          [](const PrefixesPtr& self, nb::handle tokens, nb::handle layers, nb::handle layer_types,
             nb::handle meta_states, nb::handle first_token, nb::handle snapshots, nb::handle salt,
             nb::handle extras) {
            return store(self, PromptArgument(tokens, salt, extras),
                         {layers, layer_types, meta_states, first_token, snapshots});
          },
          nb::arg("tokens"), nb::arg("layers"), nb::kw_only(), nb::arg("layer_types"),
          nb::arg("meta_states") = nb::none(), nb::arg("first_token") = 0,
          nb::arg("snapshots") = nb::make_tuple(), nb::arg("salt") = "",
          nb::arg("extras") = nb::none(), kPrefixStoreDoc)
      .def(
          "preload",
          [](const PrefixesPtr& self, const Match& match) {
            return without_gil([&] { return (*self)->preload(match.match); });
          },
          nb::arg("match"), kPrefixPreloadDoc)
      .def("why", why, nb::arg("tokens"), nb::kw_only(), nb::arg("salt") = "",
           nb::arg("extras") = nb::none(), kPrefixWhyDoc)
      .def(
          "stats",
          [](const PrefixesPtr& self) {
            return nb::module_::import_("json").attr("loads")(to_json((*self)->stats()));
          },
          kPrefixStatsDoc);
}

}  // namespace kvkeep::python
