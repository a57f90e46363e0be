// Tensor names and state keys to layer states (docs/contract.md B.10). Nothing in the header is
// believed: counts are followed only as far as the file has tensors and keys for them.
//
// Threads: any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codec/safetensors_header.h"
#include "kvkeep/block.h"
#include "kvkeep/status.h"

namespace kvkeep {

struct RebuiltLayers {
  std::vector<LayerState> layers;
  uint32_t misaligned_tensors = 0;
};

// The layers that the header describes, in order. Tensors are views into `data`, the data section,
// without owners, except those that are not aligned for their dtype: they are copies and own their
// bytes.
//
// damaged() if a layer cannot be rebuilt; the message names it. kResourceExhausted if a copy finds
// no memory. REQUIRES: data.size() == header.data_bytes().
Result<RebuiltLayers> rebuild_layers(const SafetensorsHeader& header, const BlockInfo& info,
                                     BytesView data);

}  // namespace kvkeep
