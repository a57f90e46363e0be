// The metadata of a block file that speaks of the block as a whole (docs/contract.md B.7, B.11,
// B.12, RUL-15). Keys of single layers: state_writer.h.
//
// Threads: any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/image.h"
#include "codec/safetensors_header.h"
#include "kvkeep/block.h"
#include "kvkeep/block_hash.h"
#include "kvkeep/status.h"

namespace kvkeep {

inline constexpr std::string_view kDigestKey = "kvkeep_xxh3";

// Adds the keys that stand before those of the layers. `info.signature` is written as it is, lists
// that are absent or empty are left out. kInvalidArgument as meta_states_to_json(), and for a time
// that is not finite.
Status add_base_metadata(const BlockHash& hash, const BlockInfo& info, double created_at,
                         SafetensorsHeader& header);

// Adds the keys of the extended profile, which stand last; the digits of the digest are '0'.
void add_extension_metadata(const std::optional<std::string>& identity,
                            const std::optional<BlockHash>& parent,
                            const std::optional<TokenDigest>& tokens, SafetensorsHeader& header);

// True if the file carries a digest. damaged() if it has only part of what RUL-15 demands.
Result<bool> has_digest(const SafetensorsHeader& header);

// kNotFound with MissReason::kVersion unless the format version is one that can be read. damaged()
// if there is no metadata at all.
Status check_version(const SafetensorsHeader& header);

// What the keys say. damaged() if one is malformed or there is no block hash. Does not check the
// version.
Result<BlockHeader> read_block_header(const SafetensorsHeader& header);

// True for 64 lower-case hex characters.
bool is_sha256_hex(std::string_view text);

}  // namespace kvkeep
