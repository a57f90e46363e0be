// BlockMeta as JSON and back (META-03 to META-06).

#include <nlohmann/json.hpp>

#include "codec/meta_state.h"
#include "hash/json_document.h"
#include "kvkeep/block_cache.h"

namespace kvkeep {
namespace {

// What reads and writes values below goes as deep as they do.
constexpr size_t kRecordDepthMax = kMetaNestingMax + 3;

using nlohmann::json;
using nlohmann::ordered_json;

ordered_json to_value(const MetaValue& value) {
  if (const auto* list = std::get_if<std::vector<MetaValue>>(&value.v)) {
    ordered_json out = ordered_json::array();
    for (const MetaValue& item : *list) out.push_back(to_value(item));
    return out;
  }
  return std::visit(
      [](const auto& scalar) -> ordered_json {
        if constexpr (std::is_same_v<std::decay_t<decltype(scalar)>, std::vector<MetaValue>>) {
          return nullptr;
        } else {
          return scalar;
        }
      },
      value.v);
}

ordered_json meta_states_value(const std::vector<MetaState>& states) {
  ordered_json out = ordered_json::array();
  for (const MetaState& state : states) {
    ordered_json items = ordered_json::array();
    for (const MetaValue& item : state) items.push_back(to_value(item));
    out.push_back(std::move(items));
  }
  return out;
}

Status wrong(const char* name, const char* wanted) {
  return Status(Code::kInvalidArgument,
                "block record: " + std::string(name) + " is missing or is not " + wanted);
}

// Reads the members of one record. The first fault stays; what follows it is not read.
class RecordReader {
 public:
  explicit RecordReader(const json& record) : record_(record) {}

  std::string text(const char* name, bool required) {
    const json* value = find(name, required, "a text", &json::is_string);
    return value != nullptr ? value->get<std::string>() : std::string();
  }
  uint64_t count(const char* name, bool required, uint64_t most) {
    const json* value = find(name, required, "a count", &json::is_number_unsigned);
    if (value == nullptr) return 0;
    const uint64_t number = value->get<uint64_t>();
    if (number > most) fault_ = wrong(name, "a count in range");
    return number;
  }
  uint32_t count32(const char* name, bool required) {
    return static_cast<uint32_t>(count(name, required, UINT32_MAX));
  }
  double number(const char* name) {
    const json* value = find(name, true, "a number", &json::is_number);
    return value != nullptr ? value->get<double>() : 0;
  }
  std::optional<std::vector<std::string>> types(const char* name) {
    const json* value = find(name, false, "a list of texts", &json::is_array);
    if (value == nullptr) return std::nullopt;
    auto types = strings_from_json(value->dump());
    if (!types) fault_ = wrong(name, "a list of texts");
    return types;
  }
  std::optional<std::vector<MetaState>> meta_states(const char* name) {
    const json* value = find(name, false, "a list of lists", &json::is_array);
    if (value == nullptr) return std::nullopt;
    auto states = meta_states_from_json(value->dump());
    if (!states) fault_ = wrong(name, "a list of lists of scalars");
    return states;
  }
  std::optional<BlockHash> hash(const char* name, bool required) {
    const std::string hex = text(name, required);
    if (!fault_.ok() || (hex.empty() && !required)) return std::nullopt;
    const Result<BlockHash> hash = BlockHash::from_hex(hex);
    if (!hash.ok()) {
      fault_ = wrong(name, "a key in hex");
      return std::nullopt;
    }
    return *hash;
  }
  const Status& fault() const { return fault_; }

 private:
  const json* find(const char* name, bool required, const char* wanted,
                   bool (json::*is)() const noexcept) {
    if (!fault_.ok()) return nullptr;
    const auto member = record_.find(name);
    const bool absent = member == record_.end();
    if (absent ? required : !((*member).*is)()) fault_ = wrong(name, wanted);
    return absent || !fault_.ok() ? nullptr : &*member;
  }

  const json& record_;
  Status fault_;
};

}  // namespace

void touch(BlockMeta& meta, const Clock& clock) { meta.last_access = clock.wall(); }

std::string to_json(const BlockMeta& meta) {
  ordered_json out;
  out["hash"] = meta.hash.to_hex();
  out["path"] = meta.path.string();
  out["file_size"] = meta.file_size;
  out["token_count"] = meta.info.token_count;
  out["created_at"] = meta.created_at;
  out["last_access"] = meta.last_access;
  out["num_layers"] = meta.info.num_layers;
  out["model_name"] = meta.info.model_name;
  out["block_size"] = meta.info.block_size;
  out["cache_signature"] = meta.info.signature;
  if (meta.info.layer_types && !meta.info.layer_types->empty()) {
    out["layer_cache_types"] = *meta.info.layer_types;
  }
  if (meta.info.meta_states && !meta.info.meta_states->empty()) {
    out["layer_meta_states"] = meta_states_value(*meta.info.meta_states);
  }
  if (meta.info.parent) out["parent"] = meta.info.parent->to_hex();
  return out.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

Result<BlockMeta> block_meta_from_json(std::string_view text) {
  JsonDocument document;
  const bool shallow = document.parse(text, kRecordDepthMax).has_value();
  const json record = shallow ? json::parse(text, nullptr, false) : json();
  if (!record.is_object()) {
    return Status(Code::kInvalidArgument, "block record: not one JSON object");
  }
  RecordReader reader(record);
  const std::optional<BlockHash> hash = reader.hash("hash", true);
  if (!hash) return reader.fault();
  BlockMeta meta{*hash, reader.text("path", true), 0, 0, 0, {}};
  meta.file_size = reader.count("file_size", true, UINT64_MAX);
  meta.info.token_count = reader.count32("token_count", true);
  meta.created_at = reader.number("created_at");
  meta.last_access = reader.number("last_access");
  meta.info.num_layers = reader.count32("num_layers", true);
  // META-05: a record without a model name, from before there were any, has the empty one.
  meta.info.model_name = reader.text("model_name", false);
  meta.info.block_size = reader.count32("block_size", false);
  meta.info.signature = reader.text("cache_signature", false);
  meta.info.layer_types = reader.types("layer_cache_types");
  meta.info.meta_states = reader.meta_states("layer_meta_states");
  meta.info.parent = reader.hash("parent", false);
  if (!reader.fault().ok()) return reader.fault();
  return meta;
}

}  // namespace kvkeep
