// Tensors as kvkeep sees them: a dtype, a shape and bytes. No tensor library is involved.
//
// Ownership: a Tensor shares its bytes. Tensors that a load returns are read-only views into the
// block's image and keep it alive; they may outlive the cache. Tensors given to a save must stay
// valid and unchanged until the save returns, not longer.
//
// Threads: immutable after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "kvkeep/block_hash.h"
#include "kvkeep/status.h"

namespace kvkeep {

// Names and widths are those of safetensors. Elements are little-endian.
// X(enumerator, name in files, bytes per element)
#define KVKEEP_DTYPES(X)                                   \
  X(kF16, "F16", 2)                                        \
  X(kF32, "F32", 4)                                        \
  X(kBF16, "BF16", 2)                                      \
  X(kI8, "I8", 1)                                          \
  X(kI16, "I16", 2)                                        \
  X(kI32, "I32", 4)                                        \
  X(kI64, "I64", 8)                                        \
  X(kU8, "U8", 1)                                          \
  X(kU16, "U16", 2)                                        \
  X(kU32, "U32", 4)                                        \
  X(kU64, "U64", 8)                                        \
  X(kBool, "BOOL", 1)                                      \
  X(kF8E4M3, "F8_E4M3", 1) /* F8: extended profile only */ \
  X(kF8E5M2, "F8_E5M2", 1)                                 \
  X(kF8E8M0, "F8_E8M0", 1)

enum class DType : uint8_t {
#define KVKEEP_X(id, name, bytes) id,
  KVKEEP_DTYPES(KVKEEP_X)
#undef KVKEEP_X
};

std::string_view name_of(DType dtype);
size_t element_bytes(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);

// Axis lengths, outermost first. Empty: a scalar.
using Shape = std::vector<uint64_t>;

// shape's element count times the element size; none if that overflows 63 bits.
std::optional<uint64_t> byte_size(DType dtype, const Shape& shape);

// Bytes and whatever keeps them alive (may be null: the caller does).
struct SharedBytes {
  std::shared_ptr<const void> owner{};
  BytesView view{};
};

struct Tensor {
  DType dtype = DType::kU8;
  Shape shape{};
  // Row-major without gaps if byte_strides is empty; then exactly byte_size(dtype, shape) bytes.
  SharedBytes data{};
  // Input only. Bytes from one element to the next, per axis; may be 0 or negative. `data` then
  // spans every byte that can be reached, lowest address first. Loads never return strides.
  std::vector<int64_t> byte_strides{};
};

// A strided view of foreign memory, as engines hold it.
struct TensorView {
  DType dtype = DType::kU8;
  Shape shape;
  std::vector<int64_t> byte_strides;  // Empty: row-major.
  const std::byte* base = nullptr;    // Element [0, 0, …].
  std::shared_ptr<const void> keep_alive;
};

// The same view as a Tensor, without a copy. kInvalidArgument if strides and shape disagree or
// overflow.
Result<Tensor> as_tensor(const TensorView& view);

// A row-major copy. kInvalidArgument as as_tensor().
Result<Tensor> materialize(const TensorView& view);

// A row-major copy of `bytes`. kInvalidArgument if their number is not that of dtype and shape.
Result<Tensor> tensor_from_bytes(BytesView bytes, DType dtype, Shape shape);

}  // namespace kvkeep
