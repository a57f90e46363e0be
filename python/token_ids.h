// Token ids from Python.
//
// Threads: with the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "errors.h"

namespace kvkeep::python {

// A sequence of integers, or an integer array of one dimension. TypeError for anything else, bool
// and float among it; kvkeep.InvalidArgument naming index and value for an id outside 0 ... 2^32
// - 1.
std::vector<uint32_t> to_token_ids(nb::handle tokens, const Where& where);

}  // namespace kvkeep::python
