// Fills an index and an account with what a store holds, and brings a store that is too large under
// its limit before anything else happens.
#pragma once

#include <optional>

#include "kvkeep/status.h"
#include "tier/cache_state.h"

namespace kvkeep {

struct Stock {
  BlockHash hash;
  BlockFile file;
  std::optional<BlockHash> parent;
};
// What the index is to know of a file that was found. `now` is clock.mono().
Stock classify(CacheState& state, FoundBlock found, Duration now);
// Whether the file is served, by what the cache expects now.
void judge(CacheState& state, BlockFile& file);

// REQUIRES: state.directory is open and nobody else uses the state yet.
Status take_stock(CacheState& state);

}  // namespace kvkeep
