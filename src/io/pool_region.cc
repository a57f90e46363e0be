#include "io/pool_region.h"

#include <cassert>

#include "io/poison.h"

namespace kvkeep {

void PoolRegion::cut(uint64_t class_bytes) {
  assert(is_empty() && class_bytes > 0 && class_bytes <= size());
  class_bytes_ = class_bytes;
  slots_ = size() / class_bytes;
  untouched_ = 0;
  free_.clear();
  poison(memory_.data(), memory_.size());
}

std::byte* PoolRegion::take() {
  assert(!is_full());
  size_t slot = untouched_;
  if (free_.empty()) {
    ++untouched_;
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  ++used_;
  std::byte* data = memory_.data() + slot * class_bytes_;
  unpoison(data, class_bytes_);
  return data;
}

void PoolRegion::give_back(std::byte* data) {
  assert(used_ > 0 && data >= memory_.data() && data < memory_.data() + memory_.size());
  --used_;
  free_.push_back(static_cast<size_t>(data - memory_.data()) / class_bytes_);
  poison(data, class_bytes_);
}

}  // namespace kvkeep
