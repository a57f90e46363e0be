// Arguments that have to do with keys: extras and recipes.
//
// Threads: with the GIL.
// Errors:  as in arguments.h.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "errors.h"
#include "kvkeep/chain_keys.h"

namespace kvkeep::python {

// A sequence of bytes, str and int.
std::vector<Extra> to_extras(nb::handle object, const Where& where);
KeyRecipe to_recipe(nb::handle object);

}  // namespace kvkeep::python
