#include "capi/arguments.h"

#include <algorithm>
#include <cmath>

namespace kvkeep::capi {
namespace {

// Far more than anybody waits, and far less than what a Duration can hold.
constexpr double kMaxSeconds = 3.0e9;

std::string at(const std::string& name, size_t index) {
  return name + "[" + std::to_string(index) + "]";
}

}  // namespace

Result<BlockHash> to_hash(const kvkeep_key& key, const std::string& name) {
  KVKEEP_TRY(array_given(key.data, key.size, name + ".data"));
  auto hash = BlockHash::from_bytes({static_cast<const std::byte*>(key.data), key.size});
  if (hash.ok()) return hash;
  return invalid(name + ": " + hash.status().message());
}

Result<std::vector<BlockHash>> to_hashes(const kvkeep_key* keys, size_t num_keys) {
  KVKEEP_TRY(array_given(keys, num_keys, "keys"));
  std::vector<BlockHash> hashes;
  for (size_t i = 0; i < num_keys; ++i) {
    KVKEEP_TRY_ASSIGN(BlockHash hash, to_hash(keys[i], at("keys", i)));
    hashes.push_back(std::move(hash));
  }
  return hashes;
}

Result<std::map<std::string, std::string>> to_fields(const kvkeep_field* fields, size_t num_fields,
                                                     const std::string& name) {
  KVKEEP_TRY(array_given(fields, num_fields, name));
  std::map<std::string, std::string> map;
  for (size_t i = 0; i < num_fields; ++i) {
    if (fields[i].name == nullptr || fields[i].value == nullptr) {
      return invalid(at(name, i) + ": name or value is NULL");
    }
    if (!map.emplace(fields[i].name, fields[i].value).second) {
      return invalid(at(name, i) + ": \"" + fields[i].name + "\" is given twice");
    }
  }
  return map;
}

Result<std::vector<std::string>> to_texts(const char* const* texts, size_t num_texts,
                                          const std::string& name) {
  KVKEEP_TRY(array_given(texts, num_texts, name));
  std::vector<std::string> all;
  for (size_t i = 0; i < num_texts; ++i) {
    if (texts[i] == nullptr) return invalid(at(name, i) + ": NULL");
    all.emplace_back(texts[i]);
  }
  return all;
}

Result<Duration> to_duration(double seconds, const std::string& name) {
  if (std::isnan(seconds)) return invalid(name + ": not a number");
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::clamp(seconds, -kMaxSeconds, kMaxSeconds)));
}

kvkeep_key view_of(const BlockHash& hash) { return {hash.bytes().data(), hash.bytes().size()}; }

}  // namespace kvkeep::capi
