// Options of a cache from the keyword arguments of kvkeep.BlockCache.
//
// Threads: with the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include "kvkeep/options.h"

namespace kvkeep::python {

namespace nb = nanobind;

// `path` as os.fsencode() gives it, or None. TypeError and kvkeep.InvalidArgument name the
// argument.
Options to_options(nb::handle path, const nb::dict& arguments);

}  // namespace kvkeep::python
