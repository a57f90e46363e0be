// preload_blocks() brings blocks that are about to be needed from disk into the hot tier, several
// at a time. Contract C.13.
#pragma once

#include <cstddef>
#include <span>

#include "tier/block_loader.h"
#include "tier/cache_state.h"

namespace kvkeep {

// TieredBlockCache::preload(), while the cache is open.
size_t preload_blocks(CacheState& state, BlockLoader& loader, std::span<const BlockHash> keys);

}  // namespace kvkeep
