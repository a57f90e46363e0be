#include "token_ids.h"

#include <cstring>
#include <string>
#include <utility>

#include "arguments.h"
#include "array_import.h"

namespace kvkeep::python {
namespace {

template <typename T>
void copy_ids(const Tensor& array, std::vector<uint32_t>& ids, const Where& where) {
  const auto count = static_cast<int64_t>(array.shape[0]);
  const int64_t step = array.byte_strides.empty() ? sizeof(T) : array.byte_strides[0];
  // `data` begins at the lowest address: with a negative stride that is the last element.
  const int64_t first = step < 0 ? -step * (count - 1) : 0;
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, array.data.view.data() + first + i * step, sizeof value);
    if (!std::in_range<uint32_t>(value)) {
      raise_invalid(where.at(static_cast<size_t>(i)),
                    std::to_string(value) + " is outside 0 ... 4294967295");
    }
    ids.push_back(static_cast<uint32_t>(value));
  }
}

void copy_ids(const Tensor& array, std::vector<uint32_t>& ids, const Where& where) {
  switch (array.dtype) {
    case DType::kI8:
      return copy_ids<int8_t>(array, ids, where);
    case DType::kI16:
      return copy_ids<int16_t>(array, ids, where);
    case DType::kI32:
      return copy_ids<int32_t>(array, ids, where);
    case DType::kI64:
      return copy_ids<int64_t>(array, ids, where);
    case DType::kU8:
      return copy_ids<uint8_t>(array, ids, where);
    case DType::kU16:
      return copy_ids<uint16_t>(array, ids, where);
    case DType::kU32:
      return copy_ids<uint32_t>(array, ids, where);
    case DType::kU64:
      return copy_ids<uint64_t>(array, ids, where);
    default:
      raise_type_error(where,
                       "expected integers, got an array of " + std::string(name_of(array.dtype)));
  }
}

std::vector<uint32_t> ids_of_array(nb::handle tokens, const Where& where) {
  BorrowedArrays arrays;
  const Tensor array = arrays.borrow(tokens, where);
  if (array.shape.size() != 1) {
    raise_invalid(where, "must have one dimension, has " + std::to_string(array.shape.size()));
  }
  std::vector<uint32_t> ids;
  ids.reserve(array.shape[0]);
  copy_ids(array, ids, where);
  return ids;
}

}  // namespace

std::vector<uint32_t> to_token_ids(nb::handle tokens, const Where& where) {
  const bool plain = PyList_Check(tokens.ptr()) || PyTuple_Check(tokens.ptr());
  const bool array = PyObject_CheckBuffer(tokens.ptr()) || nb::hasattr(tokens, "__dlpack__");
  if (!plain && array) return ids_of_array(tokens, where);

  const nb::object list = to_list(tokens, where, "a sequence of integers or an integer array");
  std::vector<uint32_t> ids;
  ids.reserve(nb::len(list));
  for (nb::handle item : list) ids.push_back(to_uint32(item, where.at(ids.size())));
  return ids;
}

}  // namespace kvkeep::python
