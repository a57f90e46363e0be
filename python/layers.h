// Layer states between Python and C++. The Python classes are those of kvkeep/_values.py.
//
// Threads: with the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "array_import.h"
#include "errors.h"
#include "kvkeep/block.h"

namespace kvkeep::python {

// Layers as a save takes them. The tensors stand on memory that `arrays` holds.
std::vector<LayerState> to_layers(nb::handle layers, BorrowedArrays& arrays);

// A kvkeep.Block. Pairs become tuples (keys, values); all else the classes that a save takes.
nb::object from_block(LoadedBlock block);
// The fields that kvkeep.Block and kvkeep.BlockMeta share.
void add_info(nb::dict& fields, const BlockInfo& info);

}  // namespace kvkeep::python
