// The structs of directory.h as JSON.

#include <nlohmann/json.hpp>

#include "kvkeep/directory.h"

namespace kvkeep {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json to_value(const BlockRecord& record) {
  Json out = Json::parse(to_json(record.meta), nullptr, false);
  out["allocated_size"] = record.allocated;
  out["state"] = name_of(record.state);
  if (record.state != BlockState::kOk) return out;
  out["profile"] = record.has_digest ? "extended" : "seed";
  if (!record.identity) return out;
  out["identity"] = *record.identity;
  if (record.name_space == nullptr) return out;
  out["identity_fields"] = record.name_space->fields;
  if (const std::string build = record.name_space->build(); !build.empty()) out["build"] = build;
  return out;
}

// "ok", or the word that a load would count.
std::string word_of(const Status& verdict) {
  if (verdict.ok()) return "ok";
  if (verdict.miss_reason()) return std::string(name_of(*verdict.miss_reason()));
  return verdict.code() == Code::kResourceExhausted ? "no_memory" : "unreadable";
}

void add_verdict(Json& out, const Status& verdict) {
  out["verdict"] = word_of(verdict);
  if (!verdict.ok()) out["why"] = verdict.message();
}

Json to_value(const TensorRow& tensor) {
  Json out = {{"name", tensor.name},
              {"dtype", name_of(tensor.dtype)},
              {"shape", tensor.shape},
              {"bytes", tensor.bytes}};
  if (tensor.is_null) out["null"] = true;
  return out;
}

Json to_value(const LayerRow& layer) {
  Json out = {{"layer", layer.layer}, {"kind", layer.kind}, {"bytes", layer.bytes}};
  if (!layer.type.empty()) out["type"] = layer.type;
  out["tensors"] = Json::array();
  for (const TensorRow& tensor : layer.tensors) out["tensors"].push_back(to_value(tensor));
  return out;
}

}  // namespace

std::string to_json(const BlockRecord& record) { return dump(to_value(record)); }

std::string to_json(const BlockInspection& inspection) {
  Json out = to_value(inspection.record);
  out["digest"] = name_of(inspection.digest);
  add_verdict(out, inspection.verdict);
  out["metadata"] = Json::object();
  for (const auto& [key, value] : inspection.metadata) out["metadata"][key] = value;
  out["layers"] = Json::array();
  for (const LayerRow& layer : inspection.layers) out["layers"].push_back(to_value(layer));
  return dump(out);
}

std::string to_json(const VerifiedBlock& block) {
  Json out = {
      {"hash", block.hash.to_hex()}, {"path", block.path.string()}, {"file_size", block.file_size}};
  if (block.verdict.ok()) out["profile"] = block.has_digest ? "extended" : "seed";
  out["state"] = word_of(block.verdict);
  if (!block.verdict.ok()) out["why"] = block.verdict.message();
  return dump(out);
}

}  // namespace kvkeep
