#include "hash/json_document.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <new>
#include <vector>

namespace kvkeep {

std::optional<simdjson::dom::element> JsonDocument::parse(std::string_view text, size_t depth_max) {
  // The parser counts the document itself as a level.
  const size_t capacity = std::max<size_t>(text.size(), simdjson::SIMDJSON_PADDING);
  simdjson::error_code error = parser_.allocate(capacity, depth_max + 1);
  simdjson::dom::element root;
  if (error == simdjson::SUCCESS) error = parser_.parse(text.data(), text.size()).get(root);
  out_of_memory_ = error == simdjson::MEMALLOC;
  if (error != simdjson::SUCCESS) return std::nullopt;
  return root;
}

void JsonDocument::require_memory() const {
  if (out_of_memory_) std::rethrow_exception(std::make_exception_ptr(std::bad_alloc()));
}

bool members_are_unique(simdjson::dom::object object) {
  std::vector<std::string_view> names;
  names.reserve(object.size());
  for (const auto member : object) names.push_back(member.key);
  std::sort(names.begin(), names.end());
  return std::adjacent_find(names.begin(), names.end()) == names.end();
}

std::optional<double> parse_number(std::string_view text) {
  JsonDocument document;
  const auto root = document.parse(text, 1);
  document.require_memory();
  double value = 0;
  if (!root || !root->is_number() || root->get_double().get(value) != simdjson::SUCCESS ||
      !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

}  // namespace kvkeep
