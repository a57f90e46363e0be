// A prompt's tokens from a file: a JSON array of token ids.
//
// Threads: pure, but for the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kvkeep/status.h"

namespace kvkeep::cli {

// kInvalidArgument, naming the token by its index.
Result<std::vector<uint32_t>> parse_tokens(std::string_view json);

// "-" is the standard input. kNotFound: there is no such file. kUnavailable: it cannot be read.
Result<std::vector<uint32_t>> read_tokens(const std::string& file);

}  // namespace kvkeep::cli
