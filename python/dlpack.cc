#include "dlpack.h"

namespace kvkeep::python::dlpack {
namespace {

enum TypeCode : uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kBool = 6,
  kFloat8E4M3 = 10,
  kFloat8E5M2 = 12,
  kFloat8E8M0 = 14,
};

uint8_t code_of(DType dtype) {
  switch (dtype) {
    case DType::kF16:
    case DType::kF32:
      return kFloat;
    case DType::kBF16:
      return kBfloat;
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
      return kInt;
    case DType::kU8:
    case DType::kU16:
    case DType::kU32:
    case DType::kU64:
      return kUInt;
    case DType::kBool:
      return kBool;
    case DType::kF8E4M3:
      return kFloat8E4M3;
    case DType::kF8E5M2:
      return kFloat8E5M2;
    case DType::kF8E8M0:
      return kFloat8E8M0;
  }
  return kUInt;
}

constexpr DType kAll[] = {
#define KVKEEP_X(id, name, bytes) DType::id,
    KVKEEP_DTYPES(KVKEEP_X)
#undef KVKEEP_X
};

}  // namespace

DataType data_type(DType dtype) {
  return {code_of(dtype), static_cast<uint8_t>(8 * element_bytes(dtype)), 1};
}

std::optional<DType> dtype_of(DataType type) {
  for (DType dtype : kAll) {
    const DataType own = data_type(dtype);
    if (own.code == type.code && own.bits == type.bits && type.lanes == 1) return dtype;
  }
  return std::nullopt;
}

}  // namespace kvkeep::python::dlpack
