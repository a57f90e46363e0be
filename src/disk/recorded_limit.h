// .kvkeep/limit.json: the limit that the process which owns the store was given, for tools.
//
//   {"max_size_bytes": 53687091200         }
//
// Always of the same length, so that another limit changes nothing about the bytes in use.
//
// Threads: one writer at a time, the owner of the store; readers any time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "io/file_system.h"

namespace kvkeep {

// None if there is no file, or it cannot be read, or makes no sense.
std::optional<uint64_t> read_recorded_limit(FileSystem& file_system);

// The contents of the file.
std::string recorded_limit_text(uint64_t max_size_bytes);

}  // namespace kvkeep
