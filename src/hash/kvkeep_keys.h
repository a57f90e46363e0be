// Key recipe "kvkeep-1": docs/contract.md B.20, and kvkeep/chain_keys.h, which is how it is used.
//
// REQUIRES: parents of 32 bytes; UTF-8; counts and sizes that fit 32 bits.
// Threads:  any thread.
#pragma once

#include <span>

#include "kvkeep/chain_keys.h"

namespace kvkeep {

Result<BlockHash> kvkeep_root(const Namespace& fields);
Result<BlockHash> kvkeep_key(const BlockHash& parent, std::span<const uint32_t> tokens,
                             std::span<const Extra> extras);

}  // namespace kvkeep
