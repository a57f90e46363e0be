#include "kvkeep/tensor.h"

#include <array>
#include <cstring>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "codec/gather.h"

namespace kvkeep {
namespace {

struct DTypeRow {
  std::string_view name;
  size_t bytes;
};

constexpr std::array kDTypes = {
#define KVKEEP_X(id, name, bytes) DTypeRow{name, bytes},
    KVKEEP_DTYPES(KVKEEP_X)
#undef KVKEEP_X
};

Result<std::shared_ptr<std::byte[]>> allocate_bytes(uint64_t bytes) {
  std::byte* memory = new (std::nothrow) std::byte[bytes];
  if (memory == nullptr) {
    return Status(Code::kResourceExhausted, "no memory for " + std::to_string(bytes) + " bytes");
  }
  return std::shared_ptr<std::byte[]>(memory);
}

Tensor owned(DType dtype, Shape shape, std::shared_ptr<std::byte[]> bytes, uint64_t size) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  tensor.data.view = {bytes.get(), static_cast<size_t>(size)};
  tensor.data.owner = std::move(bytes);
  return tensor;
}

bool is_row_major(const TensorView& view) {
  auto stride = static_cast<int64_t>(element_bytes(view.dtype));
  for (size_t i = view.shape.size(); i-- > 0;) {
    if (view.shape[i] != 1 && view.byte_strides[i] != stride) return false;
    stride *= static_cast<int64_t>(view.shape[i]);
  }
  return true;
}

}  // namespace

std::string_view name_of(DType dtype) {
  const auto row = static_cast<size_t>(dtype);
  return row < kDTypes.size() ? kDTypes[row].name : std::string_view();
}

size_t element_bytes(DType dtype) {
  const auto row = static_cast<size_t>(dtype);
  return row < kDTypes.size() ? kDTypes[row].bytes : 0;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (size_t row = 0; row < kDTypes.size(); ++row) {
    if (kDTypes[row].name == name) return static_cast<DType>(row);
  }
  return std::nullopt;
}

std::optional<uint64_t> byte_size(DType dtype, const Shape& shape) {
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  uint64_t bytes = element_bytes(dtype);
  bool empty = false;
  for (const uint64_t length : shape) {
    if (length > kMax) return std::nullopt;
    empty |= length == 0;
  }
  if (empty) return 0;
  for (const uint64_t length : shape) {
    if (__builtin_mul_overflow(bytes, length, &bytes) || bytes > kMax) return std::nullopt;
  }
  return bytes;
}

Result<Tensor> as_tensor(const TensorView& view) {
  Tensor tensor;
  tensor.dtype = view.dtype;
  tensor.shape = view.shape;
  tensor.data.owner = view.keep_alive;
  const auto bytes = byte_size(view.dtype, view.shape);
  if (!bytes) return Status(Code::kInvalidArgument, "the shape is too large");
  Reach reach{0, static_cast<int64_t>(*bytes)};
  if (!view.byte_strides.empty()) {
    KVKEEP_TRY_ASSIGN(reach, reach_of(view.dtype, view.shape, view.byte_strides));
    if (*bytes > 0 && !is_row_major(view)) tensor.byte_strides = view.byte_strides;
  }
  if (*bytes > 0) {
    if (view.base == nullptr) return Status(Code::kInvalidArgument, "the tensor has no data");
    tensor.data.view = {view.base + reach.low, static_cast<size_t>(reach.high - reach.low)};
  }
  KVKEEP_TRY(check_source(tensor).status());
  return tensor;
}

Result<Tensor> materialize(const TensorView& view) {
  KVKEEP_TRY_ASSIGN(const Tensor source, as_tensor(view));
  const uint64_t bytes = *byte_size(source.dtype, source.shape);
  KVKEEP_TRY_ASSIGN(auto memory, allocate_bytes(bytes));
  gather(source, memory.get(), {});
  return owned(source.dtype, source.shape, std::move(memory), bytes);
}

Result<Tensor> tensor_from_bytes(BytesView bytes, DType dtype, Shape shape) {
  Tensor source;
  source.dtype = dtype;
  source.shape = shape;
  source.data.view = bytes;
  KVKEEP_TRY(check_source(source).status());
  KVKEEP_TRY_ASSIGN(auto memory, allocate_bytes(bytes.size()));
  gather(source, memory.get(), {});
  return owned(dtype, std::move(shape), std::move(memory), bytes.size());
}

}  // namespace kvkeep
