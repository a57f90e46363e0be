// The tokens of a slot file whose state is of a kind that cannot be cut, such as that of a sliding
// window or a recurrent model. The state is not looked at: such a file is good only as a whole.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "kvkeep/status.h"
#include "kvkeep/tensor.h"

namespace kvkeep::llama {

struct SlotTokens {
  uint32_t version = 0;
  std::vector<uint32_t> tokens{};
};

// Errors as parse_slot_file(), for the part before the state.
Result<SlotTokens> read_slot_tokens(BytesView bytes);

}  // namespace kvkeep::llama
