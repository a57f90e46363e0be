// The sizes in which the buffer pool hands out memory: 2^k times 1, 1.25, 1.5 or 1.75, in multiples
// of 4096. Above 16 KiB at most 20 % of a buffer is unused.
#pragma once

#include <cstdint>

namespace kvkeep {

// The smallest class that holds `bytes`; 4096 for 0.
// REQUIRES: bytes <= 2^62.
uint64_t size_class_of(uint64_t bytes);

// Bytes of a pool region that is to be cut into buffers of one class: room for several, in
// proportion to the pool, or exactly one where several would waste more than 20 % or do not fit.
// REQUIRES: `class_bytes` is a size class.
uint64_t region_bytes_for(uint64_t class_bytes, uint64_t pool_limit, uint64_t max_region_bytes);

// Whether a region of that size, cut into that class, is used to 80 %.
bool region_suits(uint64_t region_bytes, uint64_t class_bytes);

}  // namespace kvkeep
