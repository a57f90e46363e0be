// Arguments of C calls as C++ values. Every failure names the argument.
//
// Threads: pure functions.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "capi/last_error.h"
#include "kvkeep/block_hash.h"
#include "kvkeep/environment.h"

namespace kvkeep::capi {

// Far above any size that a struct of c.h will have, and small enough to be read safely.
inline constexpr size_t kLargestStruct = 4096;

// A struct of c.h whose first version had `first_size` bytes: fields that the caller does not know
// are zero, and fields that this library does not know must be.
template <typename Struct>
Result<Struct> read_struct(const Struct* given, size_t first_size, const std::string& name) {
  if (given == nullptr) return invalid(name + ": NULL");
  size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (size < first_size || size > kLargestStruct) {
    return invalid(name + ": struct_size is " + std::to_string(size) + "; set it to sizeof");
  }
  const char* bytes = reinterpret_cast<const char*>(given);
  for (size_t i = sizeof(Struct); i < size; ++i) {
    if (bytes[i] != 0) return invalid(name + ": uses a field that this version does not know");
  }
  Struct read{};
  std::memcpy(&read, given, std::min(size, sizeof read));
  return read;
}

inline Status not_null(const void* pointer, const char* name) {
  return pointer != nullptr ? Status() : invalid(std::string(name) + ": NULL");
}
// An array may be NULL only if it is empty.
inline Status array_given(const void* first, size_t count, const std::string& name) {
  return first != nullptr || count == 0 ? Status() : invalid(name + ": NULL");
}

Result<BlockHash> to_hash(const kvkeep_key& key, const std::string& name);
Result<std::vector<BlockHash>> to_hashes(const kvkeep_key* keys, size_t num_keys);
Result<std::map<std::string, std::string>> to_fields(const kvkeep_field* fields, size_t num_fields,
                                                     const std::string& name);
Result<std::vector<std::string>> to_texts(const char* const* texts, size_t num_texts,
                                          const std::string& name);
// Seconds of any size, but a number.
Result<Duration> to_duration(double seconds, const std::string& name);

kvkeep_key view_of(const BlockHash& hash);

}  // namespace kvkeep::capi
