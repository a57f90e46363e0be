// Marks memory that nobody may touch, for builds with the address sanitizer; nothing otherwise.
#pragma once

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KVKEEP_HAS_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define KVKEEP_HAS_ASAN 1
#endif

#ifdef KVKEEP_HAS_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace kvkeep {

#ifdef KVKEEP_HAS_ASAN
inline void poison(void* start, size_t bytes) { __asan_poison_memory_region(start, bytes); }
inline void unpoison(void* start, size_t bytes) { __asan_unpoison_memory_region(start, bytes); }
#else
inline void poison(void*, size_t) {}
inline void unpoison(void*, size_t) {}
#endif

}  // namespace kvkeep
