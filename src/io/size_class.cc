#include "io/size_class.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "base/bytes.h"
#include "io/file_system.h"
#include "io/mapped_memory.h"

namespace kvkeep {

uint64_t size_class_of(uint64_t bytes) {
  assert(bytes <= uint64_t{1} << 62);
  if (bytes <= kIoAlign) return kIoAlign;
  const uint64_t quarter = std::bit_floor(bytes - 1) / 4;
  return round_up(round_up(bytes, quarter), kIoAlign);
}

bool region_suits(uint64_t region_bytes, uint64_t class_bytes) {
  const uint64_t used = region_bytes / class_bytes * class_bytes;
  return used >= region_bytes - region_bytes / 5;
}

uint64_t region_bytes_for(uint64_t class_bytes, uint64_t pool_limit, uint64_t max_region_bytes) {
  // A sixty-fourth of the pool: many classes in use at once then hold little memory that none uses.
  constexpr uint64_t kShare = 64;
  constexpr uint64_t kBuffers = 4;
  const uint64_t largest = std::bit_floor(std::max<uint64_t>(max_region_bytes, kHugePage));
  const uint64_t wanted = std::max(pool_limit / kShare, std::min(class_bytes, largest) * kBuffers);
  const uint64_t shared = std::bit_ceil(std::clamp<uint64_t>(wanted, kHugePage, largest));
  if (shared / class_bytes >= 2 && region_suits(shared, class_bytes)) return shared;
  return round_up(class_bytes, kHugePage);
}

}  // namespace kvkeep
