// Which TurboQuant bit depth a block is stamped with: contract B.13, DEF-55, DEF-76.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kvkeep/block.h"
#include "kvkeep/options.h"
#include "kvkeep/status.h"

namespace kvkeep {

// The depth that the block proves, else (seed-exact profile) the expected one, else none.
//
// kFailedPrecondition with Refusal::kRefusedBits if layers contradict each other, or if the
// extended profile is to vouch for an expected depth that a TurboQuant block does not prove.
Result<std::optional<double>> stamped_bits(const std::vector<LayerState>& layers,
                                           const BlockInfo& info, std::optional<double> expected,
                                           Profile profile);

}  // namespace kvkeep
