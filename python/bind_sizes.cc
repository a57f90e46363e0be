#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "arguments.h"
#include "bindings.h"
#include "kvkeep/size_string.h"

namespace kvkeep::python {

void bind_sizes(nb::module_& module) {
  module.def(
      "parse_size", [](nb::handle size) { return to_size(size, Where("size")); }, nb::arg("size"),
      "Bytes of a size: an int, or text such as '512MB', '50G' or '1.5 TB' (1KB = 1024).\n\n"
      "ValueError (kvkeep.InvalidArgument) for anything else.");
  module.def(
      "format_bytes", [](nb::handle size) { return format_bytes(to_size(size, Where("size"))); },
      nb::arg("size"), "A number of bytes for people: '1.50GB'.");
}

}  // namespace kvkeep::python
