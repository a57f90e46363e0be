#include "capi/arguments.h"
#include "capi/handles.h"
#include "kvkeep/chain_keys.h"

namespace kvkeep::capi {
namespace {

constexpr size_t kFirstSize =
    offsetof(kvkeep_chain_options, num_extras) + sizeof(kvkeep_chain_options::num_extras);
static_assert(kFirstSize == sizeof(kvkeep_chain_options), "padding at the end hides new fields");

Result<KeyRecipe> to_recipe(const char* name) {
  if (name == nullptr) return KeyRecipe::kKvkeep1;
  const auto recipe = key_recipe_from_name(name);
  if (recipe.ok()) return recipe;
  return invalid("options.recipe: " + recipe.status().message());
}

Result<Extra> to_extra(const kvkeep_extra& given, const std::string& name) {
  if (given.type == KVKEEP_EXTRA_INTEGER) return Extra(given.integer);
  KVKEEP_TRY(array_given(given.data, given.size, name + ".data"));
  Extra extra;
  if (given.type == KVKEEP_EXTRA_BYTES) {
    const auto* data = static_cast<const std::byte*>(given.data);
    extra.emplace<std::vector<std::byte>>().assign(data, data + given.size);
    return extra;
  }
  if (given.type == KVKEEP_EXTRA_TEXT) {
    const auto* data = static_cast<const char*>(given.data);
    extra.emplace<std::string>().assign(data, given.size);
    return extra;
  }
  return invalid(name + ".type: " + std::to_string(given.type) + " is no kvkeep_extra_type");
}

Result<std::vector<std::vector<Extra>>> to_extras(const kvkeep_extra* given, size_t count,
                                                  size_t blocks) {
  KVKEEP_TRY(array_given(given, count, "options.extras"));
  std::vector<std::vector<Extra>> extras;
  for (size_t i = 0; i < count; ++i) {
    const std::string name = "options.extras[" + std::to_string(i) + "]";
    if (given[i].block >= blocks) {
      return invalid(name + ".block: " + std::to_string(given[i].block) + "; the prompt has " +
                     std::to_string(blocks));
    }
    if (given[i].block + 1 < extras.size()) return invalid(name + ".block: out of order");
    extras.resize(given[i].block + 1);
    KVKEEP_TRY_ASSIGN(Extra extra, to_extra(given[i], name));
    extras.back().push_back(std::move(extra));
  }
  return extras;
}

// Full blocks and a shorter last one.
size_t blocks_of(size_t num_tokens, uint32_t block_size) {
  return block_size == 0 ? 0 : num_tokens / block_size + (num_tokens % block_size != 0 ? 1 : 0);
}

Result<ChainOptions> to_chain_options(const kvkeep_chain_options* given, size_t num_tokens) {
  KVKEEP_TRY_ASSIGN(const kvkeep_chain_options read, read_struct(given, kFirstSize, "options"));
  ChainOptions options;
  KVKEEP_TRY_ASSIGN(options.fields, to_fields(read.fields, read.num_fields, "options.fields"));
  KVKEEP_TRY_ASSIGN(options.recipe, to_recipe(read.recipe));
  options.block_size = read.block_size;
  options.partial = read.partial != 0;
  KVKEEP_TRY_ASSIGN(options.extras, to_extras(read.extras, read.num_extras,
                                              blocks_of(num_tokens, read.block_size)));
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
    KVKEEP_TRY_ASSIGN(const auto chain, kvkeep::capi::to_chain_options(options, num_tokens));
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
