// ExactBufferPool counts what was asked for, to the byte, so that tests can compute figures by
// hand. Each buffer is memory of its own; with the address sanitizer every byte beyond it is
// guarded.
//
// Threads: any thread.
#pragma once

#include <cstdlib>
#include <string>

#include "base/bytes.h"
#include "base/mutex.h"
#include "io/buffer_pool.h"
#include "io/file_system.h"
#include "io/poison.h"

namespace kvkeep::testing {

class ExactBufferPool : public BufferPool {
 public:
  static std::shared_ptr<ExactBufferPool> create(uint64_t limit_bytes) {
    return std::make_shared<ExactBufferPool>(limit_bytes);
  }
  explicit ExactBufferPool(uint64_t limit_bytes) : limit_(limit_bytes) {}

  Result<PooledBuffer> allocate(size_t bytes) override KVKEEP_EXCLUDES(mu_) {
    {
      MutexLock lock(mu_);
      if (bytes > limit_ - in_use_) {
        return Status(Code::kResourceExhausted,
                      std::to_string(bytes) + " bytes of buffer do not fit");
      }
      in_use_ += bytes;
    }
    auto* data = static_cast<std::byte*>(std::aligned_alloc(kIoAlign, memory_of(bytes)));
    if (data == nullptr) std::abort();
    poison(data + bytes, memory_of(bytes) - bytes);
    return make(data, bytes, nullptr);
  }
  uint64_t rounded_bytes(size_t bytes) const override { return bytes; }
  uint64_t in_use_bytes() const override KVKEEP_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return in_use_;
  }
  uint64_t mapped_bytes() const override { return in_use_bytes(); }

 protected:
  void release(std::byte* data, size_t capacity, void*) override KVKEEP_EXCLUDES(mu_) {
    unpoison(data, memory_of(capacity));
    std::free(data);
    MutexLock lock(mu_);
    in_use_ -= capacity;
  }

 private:
  static size_t memory_of(size_t bytes) { return round_up(bytes == 0 ? 1 : bytes, kIoAlign); }

  const uint64_t limit_;
  mutable Mutex mu_;
  uint64_t in_use_ KVKEEP_GUARDED_BY(mu_) = 0;
};

}  // namespace kvkeep::testing
