// Blocks of the same model that were made by other builds of the server: they take room and are of
// no use to this one.
//
// Threads:  pure functions.
// Blocking: reads the header of every block.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "kvkeep/block_hash.h"

namespace kvkeep::daemon {

struct OtherBuild {
  std::string build;
  std::vector<BlockHash> blocks;
  uint64_t bytes = 0;  // On disk.
};

// With the field "model_digest" of `fields`, but not of its field "build".
std::vector<OtherBuild> blocks_of_other_builds(const std::filesystem::path& store,
                                               const std::map<std::string, std::string>& fields);

}  // namespace kvkeep::daemon
