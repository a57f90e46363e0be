// MappedMemory is memory straight from the system: aligned to 2 MiB, of huge pages where they are
// given, and faulted in, so that the first use is as fast as the second.
//
// Ownership: unmapped by the destructor. Move-only.
// Threads:   one thread at a time.
#pragma once

#include <cstddef>

#include "kvkeep/status.h"

namespace kvkeep {

inline constexpr size_t kHugePage = size_t{2} << 20;

class MappedMemory {
 public:
  // kResourceExhausted if the system has not that much.
  // REQUIRES: `bytes` is a positive multiple of kHugePage.
  static Result<MappedMemory> map(size_t bytes);

  MappedMemory(MappedMemory&& other) noexcept;
  MappedMemory& operator=(MappedMemory&& other) = delete;
  ~MappedMemory();

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  MappedMemory(std::byte* data, size_t size) : data_(data), size_(size) {}

  std::byte* data_;
  size_t size_;
};

}  // namespace kvkeep
