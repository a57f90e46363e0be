// The binary layout of DLPack 1.0, as far as tensors in the memory of the CPU need it.
//
// Layout and numbers: https://dmlc.github.io/dlpack/latest/c_api.html.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "kvkeep/tensor.h"

namespace kvkeep::python::dlpack {

struct Device {
  int32_t type;
  int32_t id;
};
inline constexpr int32_t kCpu = 1;
inline constexpr int32_t kCudaHost = 3;  // Host memory that a GPU also sees.
inline constexpr int32_t kRocmHost = 11;

struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct View {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // In elements; null: row-major.
  uint64_t byte_offset;
};

// What a capsule named "dltensor" points at. Its consumer may write to the memory.
struct Managed {
  static constexpr const char* kCapsule = "dltensor";
  View view;
  void* context;
  void (*deleter)(Managed*);
};

// What a capsule named "dltensor_versioned" points at.
struct ManagedVersioned {
  static constexpr const char* kCapsule = "dltensor_versioned";
  static constexpr uint64_t kReadOnly = 1;
  static constexpr uint64_t kCopied = 2;
  uint32_t major;
  uint32_t minor;
  void* context;
  void (*deleter)(ManagedVersioned*);
  uint64_t flags;
  View view;
};

DataType data_type(DType dtype);
// None for what cannot be stored.
std::optional<DType> dtype_of(DataType type);

}  // namespace kvkeep::python::dlpack
