// GuardedCache is a cache whose calls end with an answer also where memory is short (ERR-10): what
// the standard library throws inside of them becomes kResourceExhausted, or nothing at all.
//
// Threads: as the cache inside.
#pragma once

#include <memory>

#include "kvkeep/block_cache.h"

namespace kvkeep {

std::unique_ptr<TieredBlockCache> guard_cache(std::unique_ptr<TieredBlockCache> cache);

}  // namespace kvkeep
