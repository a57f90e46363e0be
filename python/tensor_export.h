// kvkeep tensors for other libraries: buffer protocol and DLPack over the block's own image.
//
// The memory is lent read-only. Consumers that know no read-only tensors get a copy.
//
// Threads: with the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include "kvkeep/tensor.h"

namespace kvkeep::python {

namespace nb = nanobind;

// The buffer protocol of kvkeep.Tensor: typed where the struct module has a format for the dtype.
PyType_Slot* tensor_slots();

// The bytes of a tensor as a flat buffer; what memoryview `raw` stands on.
struct RawBytes {
  SharedBytes bytes;
};
PyType_Slot* raw_bytes_slots();

// What a consumer of DLPack may ask for.
struct DlpackRequest {
  bool versioned = false;  // It knows DLPack 1.0, hence the read-only flag.
  bool copy = false;       // It wants a copy in any case.
};
// A capsule "dltensor_versioned" or "dltensor".
nb::object to_dlpack(const Tensor& tensor, DlpackRequest request);

}  // namespace kvkeep::python
