// How long the random walks of a run are: short by default, longer by KVKEEP_WALKS and
// KVKEEP_STEPS, and one walk again by KVKEEP_SEED.
//
// Threads: any thread.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace kvkeep {

struct WalkLength {
  uint64_t walks = 0;
  uint64_t steps = 0;
  uint64_t first_seed = 1;
};

inline WalkLength walk_length(uint64_t walks, uint64_t steps) {
  const auto given = [](const char* name, uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
  };
  return {given("KVKEEP_WALKS", walks), given("KVKEEP_STEPS", steps), given("KVKEEP_SEED", 1)};
}

}  // namespace kvkeep
