// The extension module kvkeep._kvkeep. Users import kvkeep; the stubs are kvkeep/_kvkeep.pyi.
#include "bindings.h"
#include "kvkeep/version.h"

NB_MODULE(_kvkeep, module) {
  // Blocks that are alive when the interpreter ends are no leak worth a message.
  nanobind::set_leak_warnings(false);
  module.attr("__version__") = KVKEEP_VERSION;
  kvkeep::python::bind_tensor(module);
  kvkeep::python::bind_budget(module);
  kvkeep::python::bind_budget_owner(module);
  kvkeep::python::bind_cache(module);
  kvkeep::python::bind_keys(module);
  kvkeep::python::bind_prefix(module);
  kvkeep::python::bind_sizes(module);
}
