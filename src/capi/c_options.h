// kvkeep_options as Options.
#pragma once

#include "kvkeep/c.h"
#include "kvkeep/options.h"

namespace kvkeep::capi {

// kInvalidArgument names the field.
Result<Options> to_options(const kvkeep_options* given);

}  // namespace kvkeep::capi
