// Where a loaded block came from.
//
// Threads: immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kvkeep {

enum class Source : uint8_t {
  kHot,      // From the hot tier.
  kPending,  // From the write queue.
  kDisk,     // Read and verified.
};
inline constexpr size_t kSourceCount = 3;

// "hot", "pending", "disk".
std::string_view name_of(Source source);

}  // namespace kvkeep
