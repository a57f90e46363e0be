// Tensors and layers between C and C++.
//
// Threads: pure functions.
#pragma once

#include "capi/handles.h"
#include "kvkeep/block.h"
#include "kvkeep/status.h"

namespace kvkeep::capi {

// The tensors stand on the caller's memory. kInvalidArgument names the field.
Result<BlockInput> to_block_input(const kvkeep_block_input* given);

// A handle with views of every layer that c.h can show.
std::unique_ptr<kvkeep_block> make_block(LoadedBlock loaded);

}  // namespace kvkeep::capi
