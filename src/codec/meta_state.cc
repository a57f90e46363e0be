#include "codec/meta_state.h"

#include <cmath>

#include "base/bytes.h"
#include "hash/json_document.h"
#include "hash/json_text.h"

namespace kvkeep {
namespace {

using simdjson::SUCCESS;
using simdjson::dom::array;
using simdjson::dom::element;

std::string_view append_list(std::string& out, const std::vector<MetaValue>& list, size_t depth);

// "" or what is wrong with the value.
std::string_view append_value(std::string& out, const MetaValue& value, size_t depth) {
  if (const auto* list = std::get_if<std::vector<MetaValue>>(&value.v)) {
    return append_list(out, *list, depth + 1);
  }
  if (const auto* text = std::get_if<std::string>(&value.v)) {
    return append_json_string(out, *text) ? "" : "has a text that is not UTF-8";
  }
  if (const auto* number = std::get_if<double>(&value.v)) {
    return append_json_double(out, *number) ? "" : "has a number that is not finite";
  }
  if (const auto* number = std::get_if<int64_t>(&value.v)) {
    out += std::to_string(*number);
  } else if (const auto* flag = std::get_if<bool>(&value.v)) {
    out += *flag ? "true" : "false";
  } else {
    out += "null";
  }
  return "";
}

std::string_view append_list(std::string& out, const std::vector<MetaValue>& list, size_t depth) {
  if (depth > kMetaNestingMax) return "has lists that nest deeper than 32 levels";
  out += '[';
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out += item_separator(JsonStyle::kSpaced);
    if (const auto fault = append_value(out, list[i], depth); !fault.empty()) return fault;
  }
  out += ']';
  return "";
}

bool read_list(element value, std::vector<MetaValue>& out);

// The recursion is bounded by the depth that the document was parsed with.
bool read_value(element value, MetaValue& out) {
  switch (value.type()) {
    case simdjson::dom::element_type::ARRAY:
      return read_list(value, out.v.emplace<std::vector<MetaValue>>());
    case simdjson::dom::element_type::STRING:
      out.v = std::string(value.get_string().value_unsafe());
      return is_valid_utf8(std::get<std::string>(out.v));
    case simdjson::dom::element_type::INT64:
      out.v = value.get_int64().value_unsafe();
      return true;
    case simdjson::dom::element_type::DOUBLE:
      out.v = value.get_double().value_unsafe();
      return true;
    case simdjson::dom::element_type::BOOL:
      out.v = value.get_bool().value_unsafe();
      return true;
    case simdjson::dom::element_type::NULL_VALUE:
      out.v = nullptr;
      return true;
    default:
      return false;
  }
}

bool read_list(element value, std::vector<MetaValue>& out) {
  array items;
  if (value.get_array().get(items) != SUCCESS) return false;
  for (const element item : items) {
    if (!read_value(item, out.emplace_back())) return false;
  }
  return true;
}

}  // namespace

Result<std::string> meta_states_to_json(const std::vector<MetaState>& meta_states) {
  std::string out = "[";
  for (size_t i = 0; i < meta_states.size(); ++i) {
    if (i > 0) out += item_separator(JsonStyle::kSpaced);
    if (const auto fault = append_list(out, meta_states[i], 0); !fault.empty()) {
      return Status(Code::kInvalidArgument,
                    "layer " + std::to_string(i) + ": its meta state " + std::string(fault));
    }
  }
  return out + "]";
}

std::optional<std::vector<MetaState>> meta_states_from_json(std::string_view json) {
  JsonDocument document;
  const auto root = document.parse(json, kMetaNestingMax + 2);
  document.require_memory();
  array items;
  if (!root || root->get_array().get(items) != SUCCESS) return std::nullopt;
  std::vector<MetaState> meta_states;
  for (const element item : items) {
    MetaState& meta = meta_states.emplace_back();
    if (!item.is_null() && !read_list(item, meta)) return std::nullopt;
  }
  return meta_states;
}

std::optional<std::vector<std::string>> strings_from_json(std::string_view json) {
  JsonDocument document;
  const auto root = document.parse(json, 1);
  document.require_memory();
  array items;
  if (!root || root->get_array().get(items) != SUCCESS) return std::nullopt;
  std::vector<std::string> strings;
  for (const element item : items) {
    std::string_view text;
    if (item.get_string().get(text) != SUCCESS || !is_valid_utf8(text)) return std::nullopt;
    strings.emplace_back(text);
  }
  return strings;
}

}  // namespace kvkeep
