// Leaves a note in the store of what a cache's identity is made of, for the tools.
#pragma once

#include "tier/cache_state.h"

namespace kvkeep {

// A cache works without its note, so a failure is only logged.
// REQUIRES: state.directory is open; called before the directory's bytes are counted.
void record_identity(const CacheState& state);

}  // namespace kvkeep
