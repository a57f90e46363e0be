// Arrays of any library as kvkeep tensors, without a copy.
//
// Accepted: kvkeep.Tensor; the buffer protocol (numpy with any strides, MLX, array, memoryview);
// arrays of ml_dtypes, which have no buffer format; DLPack in the memory of the CPU (torch, MLX,
// JAX).
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

#include "errors.h"
#include "kvkeep/tensor.h"

namespace kvkeep::python {

// Holds the memory of the arrays it has borrowed until it is destroyed.
//
// Threads: with the GIL, the destructor too. The tensors may be read without it.
class BorrowedArrays {
 public:
  BorrowedArrays() = default;
  ~BorrowedArrays();
  BorrowedArrays(const BorrowedArrays&) = delete;
  BorrowedArrays& operator=(const BorrowedArrays&) = delete;

  // A tensor over the array's own memory. TypeError naming `where` for anything that is no array,
  // for a dtype that cannot be stored, big-endian elements and the memory of a GPU.
  Tensor borrow(nb::handle array, const Where& where);

 private:
  // Null, with the Python error set, if the object does not lend its memory this way.
  const Py_buffer* lend_buffer(nb::handle array);
  std::unique_ptr<TensorView> from_buffer(nb::handle array, const Where& where);
  std::unique_ptr<TensorView> from_ml_dtypes(nb::handle array);
  TensorView from_dlpack(nb::handle array, const Where& where);

  std::vector<std::unique_ptr<Py_buffer>> buffers_;
  std::vector<nb::object> capsules_;  // Never consumed: they free their tensor themselves.
};

}  // namespace kvkeep::python
