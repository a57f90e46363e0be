// Fills an index and an account with what a store holds, and brings a store that is too large under
// its limit before anything else happens.
#pragma once

#include "kvkeep/status.h"
#include "tier/cache_state.h"

namespace kvkeep {

// REQUIRES: state.directory is open and nobody else uses the state yet.
Status take_stock(CacheState& state);

}  // namespace kvkeep
