#include "hash/signature.h"

#include <cassert>
#include <cmath>
#include <limits>

#include "base/bytes.h"
#include "hash/json_document.h"
#include "hash/json_text.h"
#include "hash/sha256.h"

namespace kvkeep {
namespace {

using simdjson::SUCCESS;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr size_t kSignatureDepthMax = 16;

std::optional<object> parse_object(JsonDocument& document, std::string_view text) {
  const auto root = document.parse(text, kSignatureDepthMax);
  document.require_memory();
  object members;
  if (!root || root->get_object().get(members) != SUCCESS) return std::nullopt;
  if (!members_are_unique(members)) return std::nullopt;
  return members;
}

std::optional<double> to_double(element value) {
  std::string_view text;
  if (value.get_string().get(text) == SUCCESS) return parse_number(text);
  double number = 0;
  if (!value.is_number() || value.get_double().get(number) != SUCCESS) return std::nullopt;
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

std::optional<double> to_double(const MetaValue& value) {
  if (const auto* number = std::get_if<double>(&value.v)) {
    return std::isfinite(*number) ? std::optional(*number) : std::nullopt;
  }
  if (const auto* number = std::get_if<int64_t>(&value.v)) return static_cast<double>(*number);
  if (const auto* text = std::get_if<std::string>(&value.v)) return parse_number(*text);
  return std::nullopt;
}

// Each reader leaves `out` alone if the member is absent, and returns false if it has a wrong type.
bool read_count(object members, std::string_view name, uint32_t& out) {
  element value;
  if (members[name].get(value) != SUCCESS) return true;
  uint64_t number = 0;
  if (value.get_uint64().get(number) != SUCCESS) return false;
  out = static_cast<uint32_t>(number);
  return number <= std::numeric_limits<uint32_t>::max();
}

bool read_text(element value, std::string& out) {
  std::string_view text;
  if (value.get_string().get(text) != SUCCESS || !is_valid_utf8(text)) return false;
  out = text;
  return true;
}

bool read_types(object members, std::vector<std::string>& out) {
  element value;
  if (members["layer_cache_types"].get(value) != SUCCESS) return true;
  simdjson::dom::array items;
  if (value.get_array().get(items) != SUCCESS) return false;
  for (const element item : items) {
    if (!read_text(item, out.emplace_back())) return false;
  }
  return true;
}

bool read_bits(object members, std::optional<double>& out) {
  element value;
  if (members["turboquant_kv_bits"].get(value) != SUCCESS || value.is_null()) return true;
  out = to_double(value);
  return out.has_value();
}

std::vector<std::string> replace(std::vector<std::string> types, std::string_view from,
                                 std::string_view to) {
  for (std::string& type : types) {
    if (type == from) type = to;
  }
  return types;
}

}  // namespace

std::string make_signature(const SignatureFields& fields) {
  std::string out =
      "{\"block_size\":" + std::to_string(fields.block_size) + ",\"layer_cache_types\":";
  if (!append_json_strings(out, fields.layer_types, JsonStyle::kCompact)) return {};
  out += ",\"model_name\":";
  if (!append_json_string(out, fields.model_name)) return {};
  out += ",\"num_layers\":" + std::to_string(fields.num_layers);
  if (fields.turboquant_bits) {
    out += ",\"turboquant_kv_bits\":";
    if (!append_json_double(out, *fields.turboquant_bits)) return {};
  }
  return out + "}";
}

std::optional<SignatureFields> parse_signature(std::string_view signature) {
  JsonDocument document;
  const auto members = parse_object(document, signature);
  if (!members) return std::nullopt;
  SignatureFields fields;
  element model;
  const bool has_model = (*members)["model_name"].get(model) == SUCCESS;
  const bool ok = read_count(*members, "block_size", fields.block_size) &&
                  read_count(*members, "num_layers", fields.num_layers) &&
                  read_types(*members, fields.layer_types) &&
                  read_bits(*members, fields.turboquant_bits) &&
                  (!has_model || read_text(model, fields.model_name));
  if (!ok) return std::nullopt;
  return fields;
}

std::optional<double> signature_bits(std::string_view signature) {
  JsonDocument document;
  const auto members = parse_object(document, signature);
  std::optional<double> bits;
  if (!members || !read_bits(*members, bits)) return std::nullopt;
  return bits;
}

bool is_turboquant_type(std::string_view type) {
  return type == "TurboQuantKVCache" || type == "BatchTurboQuantKVCache";
}

std::vector<std::optional<double>> layer_bits(
    const std::optional<std::vector<std::string>>& types,
    const std::optional<std::vector<MetaState>>& meta_states) {
  std::vector<std::optional<double>> bits;
  if (!types || !meta_states) return bits;
  const size_t layers = std::min(types->size(), meta_states->size());
  for (size_t i = 0; i < layers; ++i) {
    const MetaState& meta = (*meta_states)[i];
    if (is_turboquant_type((*types)[i]) && meta.size() >= 3) bits.push_back(to_double(meta[1]));
  }
  return bits;
}

std::optional<double> block_bits(const std::optional<std::vector<std::string>>& types,
                                 const std::optional<std::vector<MetaState>>& meta_states) {
  const auto bits = layer_bits(types, meta_states);
  return bits.empty() ? std::nullopt : bits.front();
}

std::vector<std::string> storage_types(std::vector<std::string> types) {
  return replace(std::move(types), "BufferedRotatingKVCache", "RotatingKVCache");
}

std::vector<std::string> canonical_types(std::vector<std::string> types) {
  types = replace(std::move(types), "SizedArraysCache", "ArraysCache");
  types = replace(std::move(types), "PrefillReadyRotatingKVCache", "RotatingKVCache");
  return replace(std::move(types), "BatchTurboQuantKVCache", "TurboQuantKVCache");
}

std::optional<std::string> identity_digest(const std::map<std::string, std::string>& identity) {
  if (identity.empty()) return std::nullopt;
  std::string text = "{";
  const auto append = [&text](const std::string& part) {
    // Options are validated; bytes that are not UTF-8 would still give an identity of their own.
    if (!append_json_string(text, part)) text += part;
  };
  for (const auto& [name, value] : identity) {
    if (text.size() > 1) text += ',';
    append(name);
    text += ':';
    append(value);
  }
  text += '}';
  Sha256 sha;
  sha.start();
  sha.add(as_byte_span(text));
  const auto digest = sha.finish();
  // Not "none": that would mean a cache without an identity.
  return digest.ok() ? to_hex(*digest) : std::string(2 * Sha256::kBytes, '0');
}

}  // namespace kvkeep
