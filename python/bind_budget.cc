#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "arguments.h"
#include "bindings.h"
#include "budget.h"
#include "cache.h"
#include "kvkeep/size_string.h"

namespace kvkeep::python {
namespace {

uint64_t shrink_to(const Budget& budget, nb::handle size, nb::handle keep) {
  const uint64_t bytes = to_size(size, Where("size"));
  const HashSet kept = to_key_set(keep, Where("keep"));
  return without_gil([&] { return budget.shared->shrink_to(static_cast<int64_t>(bytes), kept); });
}

void clear(const Budget& budget, nb::handle spill) {
  const bool spilling = to_bool(spill, Where("spill"));
  without_gil([&] {
    if (spilling) {
      budget.shared->shrink_to(0);
    } else {
      budget.shared->clear_all_owners();
    }
  });
}

std::string repr(const Budget& budget) {
  return "kvkeep.HotBudget(" + format_bytes(budget.shared->total_bytes()) + " of " +
         format_bytes(budget.shared->max_bytes()) + ")";
}

constexpr const char* kBudgetDoc =
    "One limit of RAM, and one order of last use, for the hot tiers of several caches.\n\n"
    "    budget = kvkeep.HotBudget(\"4GB\")\n"
    "    a = kvkeep.BlockCache(\"a\", max_size=\"50GB\", budget=budget)\n"
    "    b = kvkeep.BlockCache(\"b\", max_size=\"50GB\", budget=budget)\n\n"
    "max_size: bytes, as an int or as text such as \"4GB\". Bytes are those that blocks really\n"
    "occupy in RAM. Safe from any thread.";

constexpr const char* kShrinkDoc =
    "Lets least recently used blocks of all caches go until those held take at most `size` "
    "bytes.\n\n"
    "size: an int, or text such as \"1GB\". keep: keys of blocks that stay. Blocks that are not "
    "on\n"
    "disk yet are handed to the disk first; one that finds its queue full stays. Returns the "
    "bytes\n"
    "freed. May wait queue_wait seconds for a full queue; releases the GIL.";

constexpr const char* kClearDoc =
    "Lets the blocks of all caches go.\n\n"
    "spill: hand those that are not on disk yet to the disk first; one that finds its queue full\n"
    "stays. With False they are gone. Releases the GIL.";

}  // namespace

void bind_budget(nb::module_& module) {
  nb::class_<Budget>(module, "HotBudget", kBudgetDoc)
      .def(
          "__init__",
          [](Budget* self, nb::handle max_size) {
            const uint64_t bytes = to_size(max_size, Where("max_size"));
            new (self) Budget{HotBudget::create(static_cast<int64_t>(bytes))};
          },
          nb::arg("max_size"))
      .def_prop_ro(
          "max_bytes", [](const Budget& b) { return b.shared->max_bytes(); }, "The limit.")
      .def_prop_ro(
          "total_bytes", [](const Budget& b) { return b.shared->total_bytes(); },
          "Bytes that all caches hold now.")
      .def_prop_ro(
          "remaining_bytes", [](const Budget& b) { return b.shared->remaining_bytes(); },
          "max_bytes - total_bytes, never below 0.")
      .def("shrink_to", shrink_to, nb::arg("size"), nb::arg("keep") = nb::make_tuple(), kShrinkDoc)
      .def("clear", clear, nb::arg("spill") = true, kClearDoc)
      .def("__repr__", repr);
}

}  // namespace kvkeep::python
