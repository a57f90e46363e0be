// How large a store is, and how large it may become where nobody says.
//
// Blocking: looks at every file below a directory.
#pragma once

#include <cstdint>
#include <filesystem>

namespace kvkeep::daemon {

// Allocated bytes of the files below `directory`; 0 if it is not there.
uint64_t bytes_below(const std::filesystem::path& directory);

// A twentieth of the RAM, at most 1GB.
uint64_t default_hot_size();

// A tenth of the file system that `directory` is or will be on, at most 50GB.
uint64_t default_max_size(const std::filesystem::path& directory);

}  // namespace kvkeep::daemon
