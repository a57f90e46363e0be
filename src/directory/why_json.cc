// The structs of why.h as JSON.

#include <nlohmann/json.hpp>

#include "kvkeep/why.h"

namespace kvkeep {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string_view state_of(const std::optional<MissReason>& reason) {
  return reason ? name_of(*reason) : "ok";
}

Json to_value(const std::vector<FieldDifference>& differences) {
  Json out = Json::array();
  for (const FieldDifference& one : differences) {
    Json value{{"field", one.name}};
    value["stored"] = one.stored ? Json(*one.stored) : Json();
    value["asked"] = one.asked ? Json(*one.asked) : Json();
    out.push_back(std::move(value));
  }
  return out;
}

Json to_value(const BlockAnswer& answer) {
  Json out{{"hash", answer.key.to_hex()},
           {"path", answer.path.string()},
           {"state", state_of(answer.reason)},
           {"why", answer.text},
           {"file_size", answer.file_size}};
  if (answer.first_token) out["first_token"] = *answer.first_token;
  if (answer.token_count > 0) out["token_count"] = answer.token_count;
  if (!answer.differences.empty()) out["differences"] = to_value(answer.differences);
  return out;
}

Json to_value(const OtherNamespace& other) {
  return {{"root", other.name_space.digest},
          {"model_names", other.name_space.model_names},
          {"fields", other.name_space.fields},
          {"differences", to_value(other.differences)}};
}

}  // namespace

std::string to_json(const BlockAnswer& answer) { return dump(to_value(answer)); }

std::string to_json(const PromptAnswer& answer) {
  Json out{{"state", state_of(answer.reason)},
           {"why", answer.text},
           {"tokens", answer.tokens},
           {"full_blocks", answer.full_blocks},
           {"stranded_blocks", answer.stranded_blocks}};
  out["blocks"] = Json::array();
  for (const BlockAnswer& block : answer.blocks) out["blocks"].push_back(to_value(block));
  for (const OtherNamespace& other : answer.elsewhere) out["elsewhere"].push_back(to_value(other));
  if (answer.stored_block_size) out["stored_block_size"] = *answer.stored_block_size;
  return dump(out);
}

}  // namespace kvkeep
