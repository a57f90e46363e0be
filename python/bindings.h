// The parts of the module, one per file bind_*.cc.
#pragma once

#include <nanobind/nanobind.h>

namespace kvkeep::python {

namespace nb = nanobind;

void bind_tensor(nb::module_& module);
void bind_cache(nb::module_& module);
void bind_keys(nb::module_& module);
void bind_sizes(nb::module_& module);

}  // namespace kvkeep::python
