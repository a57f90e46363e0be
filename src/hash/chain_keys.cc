#include "kvkeep/chain_keys.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "base/bytes.h"
#include "hash/sha256.h"

namespace kvkeep {
namespace {

constexpr std::string_view kRootTag = "kvkeep-chain-1";
constexpr size_t kMaxCount = std::numeric_limits<uint32_t>::max();

enum ExtraType : uint8_t { kBytesExtra = 0, kTextExtra = 1, kIntegerExtra = 2 };

Status check_text(std::string_view text, std::string_view what) {
  if (text.size() > kMaxCount) {
    return Status(Code::kInvalidArgument, std::string(what) + ": longer than 2^32 - 1 bytes");
  }
  if (!is_valid_utf8(text))
    return Status(Code::kInvalidArgument, std::string(what) + ": not UTF-8");
  return {};
}

Status check_extra(const Extra& extra) {
  if (const auto* text = std::get_if<std::string>(&extra)) return check_text(*text, "text extra");
  const auto* bytes = std::get_if<std::vector<std::byte>>(&extra);
  if (bytes != nullptr && bytes->size() > kMaxCount) {
    return Status(Code::kInvalidArgument, "bytes extra: longer than 2^32 - 1 bytes");
  }
  return {};
}

void add_counted(Sha256& sha, BytesView bytes) {
  sha.add_u32(static_cast<uint32_t>(bytes.size()));
  sha.add(bytes);
}

void add_extra(Sha256& sha, const Extra& extra) {
  if (const auto* bytes = std::get_if<std::vector<std::byte>>(&extra)) {
    sha.add_u8(kBytesExtra);
    add_counted(sha, *bytes);
  } else if (const auto* text = std::get_if<std::string>(&extra)) {
    sha.add_u8(kTextExtra);
    add_counted(sha, as_byte_span(*text));
  } else {
    std::array<std::byte, sizeof(int64_t)> integer;
    store_le(integer.data(), std::get<int64_t>(extra));
    sha.add_u8(kIntegerExtra);
    add_counted(sha, integer);
  }
}

Result<BlockHash> finish(Sha256& sha) {
  KVKEEP_TRY_ASSIGN(const Sha256::Digest digest, sha.finish());
  return BlockHash::from_bytes(digest);
}

Result<BlockHash> next_key(Sha256& sha, const BlockHash& parent, std::span<const uint32_t> tokens,
                           std::span<const Extra> extras) {
  if (parent.bytes().size() != Sha256::kBytes) {
    return Status(Code::kInvalidArgument, "parent: must be 32 bytes, a root or a key of a chain");
  }
  if (tokens.size() > kMaxCount || extras.size() > kMaxCount) {
    return Status(Code::kInvalidArgument, "more than 2^32 - 1 tokens or extras in one block");
  }
  for (const Extra& extra : extras) KVKEEP_TRY(check_extra(extra));
  sha.start();
  sha.add(parent.bytes());
  sha.add_u32(static_cast<uint32_t>(tokens.size()));
  sha.add(std::as_bytes(tokens));
  sha.add_u32(static_cast<uint32_t>(extras.size()));
  for (const Extra& extra : extras) add_extra(sha, extra);
  return finish(sha);
}

}  // namespace

Result<BlockHash> chain_root(const Namespace& fields) {
  for (const auto& [name, value] : fields) {
    KVKEEP_TRY(check_text(name, "a namespace field's name"));
    KVKEEP_TRY(check_text(value, "namespace field " + name));
  }
  Sha256 sha;
  sha.start();
  sha.add(as_byte_span(kRootTag));
  sha.add_u32(static_cast<uint32_t>(fields.size()));
  for (const auto& [name, value] : fields) {
    add_counted(sha, as_byte_span(name));
    add_counted(sha, as_byte_span(value));
  }
  return finish(sha);
}

Result<BlockHash> chain_key(const BlockHash& parent, std::span<const uint32_t> tokens,
                            std::span<const Extra> extras) {
  Sha256 sha;
  return next_key(sha, parent, tokens, extras);
}

Result<std::vector<BlockHash>> chain_keys(std::span<const uint32_t> tokens,
                                          const ChainOptions& options) {
  if (options.block_size == 0) {
    return Status(Code::kInvalidArgument, "block_size: must be at least 1 token");
  }
  KVKEEP_TRY_ASSIGN(BlockHash parent, chain_root(options.fields));
  const size_t full = tokens.size() / options.block_size;
  const bool tail = options.partial && tokens.size() % options.block_size != 0;

  Sha256 sha;
  std::vector<BlockHash> keys;
  keys.reserve(full + (tail ? 1 : 0));
  for (size_t block = 0; block < full + (tail ? 1 : 0); ++block) {
    const auto rest = tokens.subspan(block * options.block_size);
    const auto own = rest.first(std::min<size_t>(options.block_size, rest.size()));
    std::span<const Extra> extras;
    if (block < options.extras.size()) extras = options.extras[block];
    KVKEEP_TRY_ASSIGN(parent, next_key(sha, parent, own, extras));
    keys.push_back(parent);
  }
  return keys;
}

}  // namespace kvkeep
