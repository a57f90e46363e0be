// A slot file of llama-server as values: its tokens, and the state of each layer as tensors that
// can be cut into blocks (kvkeep/layer_cut.h). Nothing is copied but the tokens.
//
// What is accepted is what SlotWriter writes, plus the older plain list of tokens: a file that has
// any other byte somewhere is refused or means something else. The form: docs/llama-slots.md.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "connectors/llama/slot_layout.h"
#include "kvkeep/block.h"
#include "kvkeep/status.h"

namespace kvkeep::llama {

struct SlotFile {
  SlotLayout layout{};
  // The slot that was saved: the sequence id of its cells. 0 in a file without tokens.
  uint32_t slot = 0;
  std::vector<uint32_t> tokens{};
  // A pair of keys and values for each layer, in the forms of pair_forms(). Views into the file.
  std::vector<LayerState> layers{};
  std::vector<std::string> layer_types{};  // "KVCache" for each.
};

// `bytes` is the whole file and stays as it is while `keep_alive`, which the tensors share, lives.
// kInvalidArgument: the bytes are cut off or contradict themselves. kUnimplemented: a version or a
// state that is not known here, such as media, a sliding window, a shifted context. The message
// says what and at which byte. Allocates no more than a small multiple of the file's size.
Result<SlotFile> parse_slot_file(BytesView bytes, std::shared_ptr<const void> keep_alive);

}  // namespace kvkeep::llama
