// What happens to the blocks at hand when what a cache is for changes: contract C.14.
//
// Threads: any thread; two changes at once leave what the later one expects. Memory only.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "kvkeep/block_cache.h"
#include "tier/cache_state.h"

namespace kvkeep {

// TieredBlockCache's methods of these names, while the cache is open.
bool adopt_layer_types(CacheState& state, std::span<const std::string> types);
bool set_expected_layer_types(CacheState& state, std::span<const std::string> types,
                              std::optional<double> turboquant_bits);
size_t sweep_stale_layouts(CacheState& state);
ExpectedLayout expected_layout(const CacheState& state);

// Lets the first block with layer types that a cache of a named model is about to accept say what
// the cache is for (SAVE-07, SIG-12).
void adopt_from(CacheState& state, const BlockInput& input);

// Whether a block that fitted `seen` may still be let in (RUL-48): not one that a sweep for the new
// expectation would take out of service. Ask with the block's entry locked, so that a sweep that
// begins later sees the block.
bool still_fits(const CacheState& state, const Layout& layout, const Expectation& seen);

}  // namespace kvkeep
