// Says how a loaded block differs from what was saved.
//
// Threads: any thread.
#pragma once

#include <string>

#include "kvkeep/block.h"
#include "kvkeep/options.h"

namespace kvkeep::testing {

// "" if `loaded` is what a reader must give back for `saved`, else the place of the first
// difference and both sides of it. What the format does not keep is taken into account: class names
// that fall back to the layer's type, the type alias, the clamp of rotating layers, empty lists.
// Tensors are compared element by element through their strides. An empty model name in `saved`
// matches any.
std::string difference(const BlockInput& saved, const LoadedBlock& loaded,
                       Profile profile = Profile::kExtended);

bool equal(const MetaValue& a, const MetaValue& b);

}  // namespace kvkeep::testing
