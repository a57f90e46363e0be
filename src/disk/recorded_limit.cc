#include "disk/recorded_limit.h"

#include "disk/service_file.h"
#include "disk/store_layout.h"
#include "hash/json_document.h"

namespace kvkeep {
namespace {

constexpr uint64_t kReadMax = 4096;
constexpr size_t kDigitsMax = 20;

}  // namespace

std::optional<uint64_t> read_recorded_limit(FileSystem& file_system) {
  const Result<std::string> text = read_service_file(file_system, kLimitFile, kReadMax);
  if (!text.ok()) return std::nullopt;
  JsonDocument document;
  const auto root = document.parse(*text, 1);
  simdjson::dom::object members;
  uint64_t bytes = 0;
  if (!root || root->get_object().get(members) != simdjson::SUCCESS) return std::nullopt;
  if (members["max_size_bytes"].get_uint64().get(bytes) != simdjson::SUCCESS) return std::nullopt;
  return bytes;
}

std::string recorded_limit_text(uint64_t max_size_bytes) {
  std::string digits = std::to_string(max_size_bytes);
  digits.resize(kDigitsMax, ' ');
  return "{\"max_size_bytes\": " + digits + "}\n";
}

}  // namespace kvkeep
