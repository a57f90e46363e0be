#include "kvkeep/chain_keys.h"

#include <algorithm>
#include <limits>

#include "base/bytes.h"
#include "base/guarded.h"
#include "hash/kvkeep_keys.h"
#include "hash/omlx_keys.h"
#include "hash/sha256.h"

namespace kvkeep {
namespace {

constexpr size_t kMaxCount = std::numeric_limits<uint32_t>::max();

Status refuse(std::string message) { return Status(Code::kInvalidArgument, std::move(message)); }

Status check_text(std::string_view text, const std::string& what) {
  if (text.size() > kMaxCount) return refuse(what + ": longer than 2^32 - 1 bytes");
  if (!is_valid_utf8(text)) return refuse(what + ": not UTF-8");
  return {};
}

Status check_fields(const Namespace& fields) {
  for (const auto& [name, value] : fields) {
    KVKEEP_TRY(check_text(name, "a namespace field's name"));
    KVKEEP_TRY(check_text(value, "namespace field " + name));
  }
  return {};
}

Status check_extra(const Extra& extra) {
  if (const auto* text = std::get_if<std::string>(&extra)) return check_text(*text, "text extra");
  const auto* bytes = std::get_if<std::vector<std::byte>>(&extra);
  if (bytes != nullptr && bytes->size() > kMaxCount) {
    return refuse("bytes extra: longer than 2^32 - 1 bytes");
  }
  return {};
}

Status check_block(const std::optional<BlockHash>& parent, std::span<const uint32_t> tokens,
                   std::span<const Extra> extras) {
  if (parent && parent->bytes().size() != Sha256::kBytes) {
    return refuse("parent: must be 32 bytes, a root or a key of a chain");
  }
  if (tokens.size() > kMaxCount || extras.size() > kMaxCount) {
    return refuse("more than 2^32 - 1 tokens or extras in one block");
  }
  for (const Extra& extra : extras) KVKEEP_TRY(check_extra(extra));
  return {};
}

Result<std::vector<BlockHash>> keys_of(std::span<const uint32_t> tokens,
                                       const ChainOptions& options) {
  if (options.block_size == 0) return refuse("block_size: must be at least 1 token");
  KVKEEP_TRY_ASSIGN(const KeyChain chain, KeyChain::open(options.fields, options.recipe));
  const size_t full = tokens.size() / options.block_size;
  const bool tail = options.partial && tokens.size() % options.block_size != 0;

  std::optional<BlockHash> parent;
  std::vector<BlockHash> keys;
  keys.reserve(full + (tail ? 1 : 0));
  for (size_t block = 0; block < full + (tail ? 1 : 0); ++block) {
    const auto rest = tokens.subspan(block * options.block_size);
    const auto own = rest.first(std::min<size_t>(options.block_size, rest.size()));
    std::span<const Extra> extras;
    if (block < options.extras.size()) extras = options.extras[block];
    KVKEEP_TRY_ASSIGN(parent, chain.next(parent, own, extras));
    keys.push_back(*parent);
  }
  return keys;
}

}  // namespace

std::string_view name_of(KeyRecipe recipe) {
  return recipe == KeyRecipe::kOmlx1 ? "omlx-1" : "kvkeep-1";
}

Result<KeyRecipe> key_recipe_from_name(std::string_view name) {
  for (const KeyRecipe recipe : {KeyRecipe::kKvkeep1, KeyRecipe::kOmlx1}) {
    if (name == name_of(recipe)) return recipe;
  }
  return refuse("'" + std::string(name) + "' is no key recipe; there are kvkeep-1 and omlx-1");
}

Result<KeyChain> KeyChain::open(const Namespace& fields, KeyRecipe recipe) {
  return guarded(Asked::kOther, [&]() -> Result<KeyChain> {
    KVKEEP_TRY(check_fields(fields));
    KeyChain chain(recipe);
    if (recipe == KeyRecipe::kOmlx1) {
      KVKEEP_TRY_ASSIGN(chain.model_, omlx_model(fields));
    } else {
      KVKEEP_TRY_ASSIGN(chain.root_, kvkeep_root(fields));
    }
    return chain;
  });
}

Result<BlockHash> KeyChain::next(const std::optional<BlockHash>& parent,
                                 std::span<const uint32_t> tokens,
                                 std::span<const Extra> extras) const {
  return guarded(Asked::kOther, [&]() -> Result<BlockHash> {
    KVKEEP_TRY(check_block(parent, tokens, extras));
    if (recipe_ == KeyRecipe::kOmlx1) return omlx_key(model_, parent, tokens, extras);
    return kvkeep_key(parent ? *parent : *root_, tokens, extras);
  });
}

Result<std::vector<BlockHash>> chain_keys(std::span<const uint32_t> tokens,
                                          const ChainOptions& options) {
  return guarded(Asked::kOther, [&] { return keys_of(tokens, options); });
}

}  // namespace kvkeep
