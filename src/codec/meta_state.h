// Meta states: their JSON form in a block file, and the clamp of rotating layers (docs/contract.md
// B.7, B.12, B.15).
//
// Threads: any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kvkeep/block.h"
#include "kvkeep/options.h"
#include "kvkeep/status.h"

namespace kvkeep {

// Lists inside a layer's meta state may nest this deep.
inline constexpr size_t kMetaNestingMax = 32;

// A spaced JSON array of arrays. kInvalidArgument, naming the layer, for a number that is not
// finite, a text that is not UTF-8, or lists that nest too deep.
Result<std::string> meta_states_to_json(const std::vector<MetaState>& meta_states);

// The inverse; null is the empty meta state. None if `json` is anything else than an array of
// arrays and nulls, or holds a number that no MetaValue can.
std::optional<std::vector<MetaState>> meta_states_from_json(std::string_view json);

// An array of strings; none if it is anything else.
std::optional<std::vector<std::string>> strings_from_json(std::string_view json);

// B.15 for every layer. `types` are those after the alias on save. The seed clamps a pair only if
// it has no class name. REQUIRES: as many types and meta states as layers.
std::vector<MetaState> clamp_rotating(const std::vector<LayerState>& layers,
                                      const std::vector<std::string>& types,
                                      std::vector<MetaState> meta_states, Profile profile);

}  // namespace kvkeep
