#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "arguments.h"
#include "array_import.h"
#include "bindings.h"
#include "key_arguments.h"
#include "kvkeep/chain_keys.h"
#include "token_ids.h"

namespace kvkeep::python {
namespace {

std::vector<std::vector<Extra>> extras_of_blocks(nb::handle object) {
  std::vector<std::vector<Extra>> all;
  if (object.is_none()) return all;
  const Where where("extras");
  const nb::object blocks = to_list(object, where, "a sequence with the extras of each block");
  for (nb::handle block : blocks) {
    const Where at_block = where.at(all.size());
    all.push_back(block.is_none() ? std::vector<Extra>() : to_extras(block, at_block));
  }
  return all;
}

// A convenience argument: absent if empty, and of one mind with the namespace.
void add_field(Namespace& fields, const char* field, nb::handle value, const Where& where) {
  const std::string text = to_text(value, where);
  if (text.empty()) return;
  const auto [at, fresh] = fields.emplace(field, text);
  if (!fresh && at->second != text) {
    raise_invalid(where, "namespace says '" + at->second + "' for the same field '" + field + "'");
  }
}

struct KeyArguments {
  nb::handle block_size, model_name, adapter, salt, name_space, extras, partial, recipe;
};

Namespace to_fields(const KeyArguments& given) {
  Namespace fields;
  if (!given.name_space.is_none()) fields = to_text_map(given.name_space, Where("namespace"));
  add_field(fields, "model", given.model_name, Where("model_name"));
  add_field(fields, "adapter", given.adapter, Where("adapter"));
  add_field(fields, "salt", given.salt, Where("salt"));
  return fields;
}

ChainOptions to_options(const KeyArguments& given) {
  ChainOptions options;
  options.block_size = to_uint32(given.block_size, Where("block_size"));
  options.recipe = to_recipe(given.recipe);
  options.fields = to_fields(given);
  options.partial = to_bool(given.partial, Where("partial"));
  options.extras = extras_of_blocks(given.extras);
  return options;
}

nb::list keys_of(nb::handle tokens, const KeyArguments& given) {
  const ChainOptions options = to_options(given);
  const std::vector<uint32_t> ids = to_token_ids(tokens, Where("tokens"));
  const auto keys = [&] {
    const nb::gil_scoped_release release;
    return chain_keys(ids, options);
  }();
  return from_keys(value_or_raise(keys));
}

constexpr const char* kChainKeysDoc =
    "The keys of the full blocks of a prompt: a list of bytes, 32 each.\n\n"
    "A key depends on all tokens up to the end of its block and on the namespace, so equal keys "
    "mean\n"
    "equal prefixes.\n\n"
    "tokens: ids from 0 to 4294967295, as a sequence of int or an integer array of one dimension.\n"
    "block_size: tokens of a full block.\n"
    "model_name, adapter, salt: fields 'model', 'adapter' and 'salt' of the namespace, absent if "
    "empty.\n"
    "namespace: everything else that changes a model's state for equal tokens, as a dict of str.\n"
    "extras: per block a sequence of bytes, str and int on which its state also depends, such as "
    "the\n"
    "    digest of an image; may be shorter than the number of blocks; None for no extras.\n"
    "partial: also the key of a shorter last block.\n"
    "recipe: 'omlx-1' gives the keys of oMLX, for its directories. They depend on the model's "
    "name,\n"
    "    tokens and extras only: of the namespace, model_name or the field 'model' is taken, and\n"
    "    what oMLX would tell apart by a salt goes into extras.\n\n"
    "ValueError (kvkeep.InvalidArgument) for an id out of range, a block_size of 0, a field that\n"
    "contradicts another argument or has no place in the recipe, and, by 'omlx-1', an extra whose\n"
    "key would depend on the version of Python; TypeError for a bool or a float among the ids. "
    "May\n"
    "be called from any thread and releases the GIL while it hashes.";

}  // namespace

void bind_keys(nb::module_& module) {
  module.def(
      "chain_keys",
      [](nb::handle tokens, nb::handle block_size, nb::handle model_name, nb::handle adapter,
         nb::handle salt, nb::handle name_space, nb::handle extras, nb::handle partial,
         nb::handle recipe) {
        return keys_of(
            tokens, {block_size, model_name, adapter, salt, name_space, extras, partial, recipe});
      },
      nb::arg("tokens"), nb::kw_only(), nb::arg("block_size"), nb::arg("model_name") = "",
      nb::arg("adapter") = "", nb::arg("salt") = "", nb::arg("namespace") = nb::none(),
      nb::arg("extras") = nb::none(), nb::arg("partial") = false, nb::arg("recipe") = "kvkeep-1",
      kChainKeysDoc);
}

}  // namespace kvkeep::python
