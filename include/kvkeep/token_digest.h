// TokenDigest: what tells the tokens of a block apart from those of any other (contract RUL-20).
//
// Threads: pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kvkeep/status.h"

namespace kvkeep {

// SHA-256 of the token ids, each as a little-endian u32.
using TokenDigest = std::array<std::byte, 32>;

// kInternal if the crypto library fails.
Result<TokenDigest> token_digest(std::span<const uint32_t> tokens);

}  // namespace kvkeep
