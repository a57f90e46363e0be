#include "codec/bit_depth.h"

#include <algorithm>

#include "hash/json_text.h"
#include "hash/signature.h"

namespace kvkeep {
namespace {

bool has_turboquant(const std::vector<LayerState>& layers, const BlockInfo& info) {
  const bool by_kind = std::any_of(layers.begin(), layers.end(), [](const LayerState& layer) {
    return std::holds_alternative<TurboQuantState>(layer);
  });
  return by_kind || (info.layer_types && std::any_of(info.layer_types->begin(),
                                                     info.layer_types->end(), is_turboquant_type));
}

std::string shown(double bits) {
  std::string text;
  return append_json_double(text, bits) ? text : "?";
}

Status refused(std::string message) {
  return Status(Code::kFailedPrecondition, Refusal::kRefusedBits, std::move(message));
}

}  // namespace

Result<std::optional<double>> stamped_bits(const std::vector<LayerState>& layers,
                                           const BlockInfo& info, std::optional<double> expected,
                                           Profile profile) {
  std::optional<double> first;
  for (const auto& bits : layer_bits(info.layer_types, info.meta_states)) {
    if (bits && first && *bits != *first) {
      return refused("TurboQuant layers of " + shown(*first) + " and " + shown(*bits) + " bits");
    }
    if (bits) first = bits;
  }
  const auto proven = block_bits(info.layer_types, info.meta_states);
  if (proven || !expected) return proven;
  if (profile == Profile::kSeedExact) return expected;
  if (!has_turboquant(layers, info)) return std::optional<double>();
  return refused("a TurboQuant block does not prove the expected depth of " + shown(*expected) +
                 " bits");
}

}  // namespace kvkeep
