#include "capi/arguments.h"
#include "capi/handles.h"
#include "kvkeep/chain_keys.h"

namespace kvkeep::capi {
namespace {

constexpr size_t kFirstSize =
    offsetof(kvkeep_chain_options, recipe) + sizeof(kvkeep_chain_options::recipe);
static_assert(kFirstSize == sizeof(kvkeep_chain_options), "padding at the end hides new fields");

Result<KeyRecipe> to_recipe(const char* name) {
  if (name == nullptr) return KeyRecipe::kKvkeep1;
  const auto recipe = key_recipe_from_name(name);
  if (recipe.ok()) return recipe;
  return invalid("options.recipe: " + recipe.status().message());
}

Result<ChainOptions> to_chain_options(const kvkeep_chain_options* given) {
  KVKEEP_TRY_ASSIGN(const kvkeep_chain_options read, read_struct(given, kFirstSize, "options"));
  ChainOptions options;
  KVKEEP_TRY_ASSIGN(options.fields, to_fields(read.fields, read.num_fields, "options.fields"));
  KVKEEP_TRY_ASSIGN(options.recipe, to_recipe(read.recipe));
  options.block_size = read.block_size;
  options.partial = read.partial != 0;
  return options;
}

Result<std::unique_ptr<kvkeep_keys>> make_keys(std::span<const uint32_t> tokens,
                                               const ChainOptions& options) {
  auto keys = std::make_unique<kvkeep_keys>();
  KVKEEP_TRY_ASSIGN(keys->hashes, chain_keys(tokens, options));
  for (const BlockHash& hash : keys->hashes) keys->views.push_back(view_of(hash));
  return keys;
}

}  // namespace
}  // namespace kvkeep::capi

using kvkeep::Status;
using kvkeep::capi::fenced;

kvkeep_status kvkeep_chain_keys(const uint32_t* tokens, size_t num_tokens,
                                const kvkeep_chain_options* options, kvkeep_keys** keys) {
  return fenced([&]() -> Status {
    KVKEEP_TRY(kvkeep::capi::not_null(keys, "keys"));
    *keys = nullptr;
    KVKEEP_TRY(kvkeep::capi::array_given(tokens, num_tokens, "tokens"));
    KVKEEP_TRY_ASSIGN(const auto chain, kvkeep::capi::to_chain_options(options));
    KVKEEP_TRY_ASSIGN(auto made, kvkeep::capi::make_keys({tokens, num_tokens}, chain));
    *keys = made.release();
    return {};
  });
}

size_t kvkeep_keys_count(const kvkeep_keys* keys) {
  return keys != nullptr ? keys->views.size() : 0;
}

const kvkeep_key* kvkeep_keys_data(const kvkeep_keys* keys) {
  return keys != nullptr ? keys->views.data() : nullptr;
}

void kvkeep_keys_free(kvkeep_keys* keys) { delete keys; }
