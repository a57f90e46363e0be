#include "hash/kvkeep_keys.h"

#include <array>

#include "base/bytes.h"
#include "hash/sha256.h"

namespace kvkeep {
namespace {

constexpr std::string_view kRootTag = "kvkeep-chain-1";

enum ExtraType : uint8_t { kBytesExtra = 0, kTextExtra = 1, kIntegerExtra = 2 };

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

}  // namespace

Result<BlockHash> kvkeep_root(const Namespace& fields) {
  Sha256 sha;
  sha.start();
  sha.add(as_byte_span(kRootTag));
  sha.add_u32(static_cast<uint32_t>(fields.size()));
  for (const auto& [name, value] : fields) {
    add_counted(sha, as_byte_span(name));
    add_counted(sha, as_byte_span(value));
  }
  return sha.finish_key();
}

Result<BlockHash> kvkeep_key(const BlockHash& parent, std::span<const uint32_t> tokens,
                             std::span<const Extra> extras) {
  Sha256 sha;
  sha.start();
  sha.add(parent.bytes());
  sha.add_u32(static_cast<uint32_t>(tokens.size()));
  sha.add(std::as_bytes(tokens));
  sha.add_u32(static_cast<uint32_t>(extras.size()));
  for (const Extra& extra : extras) add_extra(sha, extra);
  return sha.finish_key();
}

}  // namespace kvkeep
