// Sizes as people write them: "512MB", "50GB", "1.5 TB". 1KB = 1024 bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kvkeep/status.h"

namespace kvkeep {

// Bytes. A plain integer, or a decimal number with B, KB, MB, GB, TB or K, M, G, T, in any case,
// with optional white space around and between. kInvalidArgument with the offending text for
// anything else, negative, not finite or beyond 2^63 - 1.
Result<uint64_t> parse_size(std::string_view text);

// "1.50GB"-like: two decimals and KB, MB, GB or TB from 1024 upward, else "<n> B".
std::string format_bytes(uint64_t bytes);

}  // namespace kvkeep
