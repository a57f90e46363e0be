// BufferPool hands out large aligned buffers from a few regions that are mapped and faulted once.
//
// Fresh memory is the most expensive part of a fast read (a page fault per 4 KiB), so regions are 2
// MiB aligned, ask for huge pages, and are reused. Sizes are rounded up to classes that waste at
// most 20 % (beyond page granularity). An empty region beyond `keep_bytes` goes back to the system.
//
// Ownership: a buffer keeps its pool alive and returns to it when destroyed.
// Threads:   any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "kvkeep/status.h"

namespace kvkeep {

class BufferPool;

// Move-only. Contents are whatever the last user left there.
class PooledBuffer {
 public:
  PooledBuffer() = default;
  PooledBuffer(PooledBuffer&& other) noexcept;
  PooledBuffer& operator=(PooledBuffer&& other) noexcept;
  ~PooledBuffer();

  std::byte* data() const { return data_; }
  // Bytes that may be used: at least what was asked for, a multiple of kIoAlign (pools that round
  // to 1 byte apart). data() is aligned to kIoAlign.
  size_t capacity() const { return capacity_; }
  std::span<std::byte> span() const { return {data_, capacity_}; }

 private:
  friend class BufferPool;
  std::byte* data_ = nullptr;
  size_t capacity_ = 0;
  void* region_ = nullptr;
  std::shared_ptr<BufferPool> pool_;
};

class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  struct Options {
    uint64_t limit_bytes = 0;             // All buffers in use together, class rounding included.
    uint64_t region_bytes = 64ull << 20;  // At most; larger buffers get a region of their own.
    uint64_t keep_bytes = 256ull << 20;   // Empty regions kept for reuse.
  };
  static std::shared_ptr<BufferPool> create(const Options& options);
  virtual ~BufferPool() = default;

  // kResourceExhausted if the limit would be passed or the system has no memory. Never waits.
  virtual Result<PooledBuffer> allocate(size_t bytes) = 0;
  // The capacity that allocate(bytes) gives, which is what it counts against the limit.
  virtual uint64_t rounded_bytes(size_t bytes) const = 0;
  virtual uint64_t in_use_bytes() const = 0;
  // Memory taken from the system: in use, free in a region that is in use, or kept for reuse.
  virtual uint64_t mapped_bytes() const = 0;

 protected:
  friend class PooledBuffer;
  // `region` is handed to release() as it is.
  PooledBuffer make(std::byte* data, size_t capacity, void* region);
  virtual void release(std::byte* data, size_t capacity, void* region) = 0;
};

}  // namespace kvkeep
