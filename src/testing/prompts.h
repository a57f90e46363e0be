// Prompts and their states for tests. A row of state is a function of all tokens up to its own, as
// a model's is, so that a row of another prompt is seen to be wrong.
//
// Threads: any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kvkeep/prefix_cache.h"

namespace kvkeep::testing {

using Tokens = std::vector<uint32_t>;

// `count` tokens, other ones for another `seed`.
Tokens some_tokens(uint64_t seed, size_t count);
Tokens operator+(Tokens a, const Tokens& b);

struct StateShape {
  size_t kv_layers = 2;      // Pairs F16 [1, 2, tokens, 4] of type KVCache.
  size_t window_layers = 0;  // Pairs F16 [1, 2, window, 4] of type RotatingKVCache.
  uint64_t window = 8;
};

// The state after all of `tokens`, its cuttable layers from `first_token` on.
PromptState state_after(std::span<const uint32_t> tokens, uint64_t first_token = 0,
                        const StateShape& shape = {});
// Of the layers that cannot be cut, as after the first `count` tokens.
Snapshot snapshot_after(std::span<const uint32_t> tokens, uint64_t count, const StateShape& shape);

// "" if `prefix` holds exactly the state after its first `prefix.tokens` tokens of `tokens`, else
// where it does not.
std::string difference(const LoadedPrefix& prefix, std::span<const uint32_t> tokens,
                       const StateShape& shape = {});

}  // namespace kvkeep::testing
