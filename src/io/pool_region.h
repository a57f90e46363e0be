// PoolRegion is mapped memory cut into buffers of one size class. An empty one may be cut anew.
//
// Threads: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "io/mapped_memory.h"

namespace kvkeep {

class PoolRegion {
 public:
  explicit PoolRegion(MappedMemory memory) : memory_(std::move(memory)) {}

  uint64_t size() const { return memory_.size(); }
  uint64_t class_bytes() const { return class_bytes_; }
  bool is_empty() const { return used_ == 0; }
  bool is_full() const { return used_ == slots_; }

  // REQUIRES: is_empty(), class_bytes <= size().
  void cut(uint64_t class_bytes);
  // The buffer that was given back last, else the first that was never used.
  // REQUIRES: !is_full().
  std::byte* take();
  // REQUIRES: `data` came from take() since the last cut().
  void give_back(std::byte* data);

 private:
  MappedMemory memory_;
  uint64_t class_bytes_ = 0;
  size_t slots_ = 0;
  size_t used_ = 0;
  size_t untouched_ = 0;      // Slots from here on have not been taken since the cut.
  std::vector<size_t> free_;  // Slots before it that are free.
};

}  // namespace kvkeep
