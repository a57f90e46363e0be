// Statistics of one model, and the text form of all of them. Contract C.19.
#pragma once

#include <string>
#include <string_view>

#include "kvkeep/stats.h"
#include "tier/cache_state.h"

namespace kvkeep {

// TieredBlockCache::stats_for_model() without the limits.
ModelStats model_stats(CacheState& state, std::string_view model_name);

// TieredBlockCache::stats_json().
std::string stats_json(const CacheState& state, const CacheStats& stats);

}  // namespace kvkeep
