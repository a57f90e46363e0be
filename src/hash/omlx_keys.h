// Key recipe "omlx-1": that of oMLX, byte for byte. kvkeep/chain_keys.h says how it is used.
//
// REQUIRES: parents of 32 bytes; UTF-8.
// Threads:  any thread.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "kvkeep/chain_keys.h"

namespace kvkeep {

// The model that a namespace names, empty if none. kInvalidArgument naming any other field.
Result<std::string> omlx_model(const Namespace& fields);
// kInvalidArgument as python_text().
Result<BlockHash> omlx_key(std::string_view model, const std::optional<BlockHash>& parent,
                           std::span<const uint32_t> tokens, std::span<const Extra> extras);

}  // namespace kvkeep
