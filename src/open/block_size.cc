#include <algorithm>

#include "base/guarded.h"
#include "kvkeep/scheduler.h"

namespace kvkeep {
namespace {

constexpr uint32_t kLeastWithWindow = 512;
constexpr uint32_t kPrefillStep = 2048;

// What the layers of a model demand of its blocks.
struct Demands {
  uint32_t window = 0;  // Of rotating layers; 0: there are none.
  bool arrays = false;
};

Status refuse(std::string message) { return Status(Code::kInvalidArgument, std::move(message)); }

bool is_rotating(std::string_view type) {
  return type == "RotatingKVCache" || type == "BatchRotatingKVCache" ||
         type == "BufferedRotatingKVCache" || type == "PrefillReadyRotatingKVCache";
}

bool is_arrays(std::string_view type) {
  return type == "ArraysCache" || type == "SizedArraysCache";
}

Status add_window(uint32_t window, Demands& demands) {
  if (window == 0) return refuse("layers: a rotating cache with a window of 0 tokens");
  if (demands.window != 0 && demands.window != window) {
    return refuse("layers: windows of " + std::to_string(demands.window) + " and " +
                  std::to_string(window) + " tokens; no block size suits both");
  }
  demands.window = window;
  return {};
}

Status add_layers(std::span<const LayerCache> layers, Demands& demands) {
  for (const LayerCache& layer : layers) {
    if (is_rotating(layer.class_name)) KVKEEP_TRY(add_window(layer.window, demands));
    demands.arrays |= is_arrays(layer.class_name);
    KVKEEP_TRY(add_layers(layer.parts, demands));
  }
  return {};
}

Result<uint32_t> block_size_of(uint32_t configured, std::span<const LayerCache> layers) {
  if (configured == 0) return refuse("configured: must be at least 1 token");
  Demands demands;
  KVKEEP_TRY(add_layers(layers, demands));
  if (demands.window >= kLeastWithWindow) return demands.window;
  if (demands.window > 0) {
    return (kLeastWithWindow + demands.window - 1) / demands.window * demands.window;
  }
  return demands.arrays ? std::max(configured, kPrefillStep) : configured;
}

}  // namespace

Result<uint32_t> effective_block_size(uint32_t configured, std::span<const LayerCache> layers) {
  return guarded(Asked::kOther, [&] { return block_size_of(configured, layers); });
}

}  // namespace kvkeep
