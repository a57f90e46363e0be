#include "io/mapped_memory.h"

#include <sys/mman.h>

#include <cassert>
#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "io/poison.h"
#include "io/system_calls.h"

namespace kvkeep {
namespace {

// A mapping that starts at a multiple of kHugePage, or null. mmap() only promises 4 KiB, so more is
// mapped and the ends are given back.
std::byte* map_aligned(size_t bytes) {
  if (bytes > SIZE_MAX - kHugePage) return nullptr;
  const size_t mapped = bytes + kHugePage;
  void* raw = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  auto* start = static_cast<std::byte*>(raw);
  const auto address = reinterpret_cast<uintptr_t>(start);
  const size_t before = round_up(address, kHugePage) - address;
  const size_t after = mapped - before - bytes;
  if (before > 0) ::munmap(start, before);
  if (after > 0) ::munmap(start + before + bytes, after);
  return start + before;
}

}  // namespace

Result<MappedMemory> MappedMemory::map(size_t bytes) {
  assert(bytes > 0 && bytes % kHugePage == 0);
  std::byte* data = map_aligned(bytes);
  if (data != nullptr) {
    MappedMemory memory(data, bytes);
    if (populate_pages(data, bytes)) return memory;
  }
  return Status::from_errno(Code::kResourceExhausted,
                            "the system gives no " + std::to_string(bytes) + " bytes of memory",
                            ENOMEM);
}

MappedMemory::MappedMemory(MappedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedMemory::~MappedMemory() {
  if (data_ == nullptr) return;
  unpoison(data_, size_);
  ::munmap(data_, size_);
}

}  // namespace kvkeep
