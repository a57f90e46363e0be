// The parts of the module, one per file bind_*.cc.
#pragma once

#include <nanobind/nanobind.h>

namespace kvkeep::python {

namespace nb = nanobind;

class Cache;

void bind_tensor(nb::module_& module);
void bind_cache(nb::module_& module);
// Its parts.
void bind_questions(nb::class_<Cache>& type);
void bind_stats(nb::class_<Cache>& type);
void bind_upkeep(nb::class_<Cache>& type);
void bind_budget(nb::module_& module);
void bind_budget_owner(nb::module_& module);
void bind_keys(nb::module_& module);
void bind_prefix(nb::module_& module);
void bind_sizes(nb::module_& module);

}  // namespace kvkeep::python
