// llama-server's own measurements of one completion.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kvkeep::daemon {

struct Timings {
  uint64_t cache_n = 0;      // Tokens of the prompt that were in the slot.
  uint64_t prompt_n = 0;     // Tokens of it that were computed,
  double prompt_ms = 0;      // and how long that took.
  uint64_t predicted_n = 0;  // Tokens that were generated.
};

// From the last bytes of an answer, streamed or not. Nothing where the server does not say.
std::optional<Timings> find_timings(std::string_view tail);

}  // namespace kvkeep::daemon
