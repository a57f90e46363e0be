#include "array_import.h"

#include <nanobind/stl/string.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "dlpack.h"

namespace kvkeep::python {
namespace {

std::string dtype_text(nb::handle array, std::string_view otherwise) {
  if (!nb::hasattr(array, "dtype")) return std::string(otherwise);
  return nb::cast<std::string>(nb::str(nb::object(array.attr("dtype"))));
}

// "ndarray", or "ndarray of dtype object". Keeps the Python error that is set.
std::string described(nb::handle array) {
  nb::error_scope keep;
  const std::string dtype = dtype_text(array, "");
  return type_of(array) + (dtype.empty() ? "" : " of dtype " + dtype);
}

[[noreturn]] void raise_dtype(nb::handle array, const Where& where, std::string_view format) {
  raise_type_error(where,
                   "dtype " + dtype_text(array, format) +
                       " cannot be stored; convert the array to float32, float16, bfloat16 or "
                       "an integer type first");
}

// Kinds of buffer formats: https://docs.python.org/3/library/struct.html#format-characters.
std::optional<DType> dtype_of_format(char format, Py_ssize_t bytes) {
  constexpr std::array kSigned = {DType::kI8, DType::kI16, DType::kI32, DType::kI64};
  constexpr std::array kUnsigned = {DType::kU8, DType::kU16, DType::kU32, DType::kU64};
  const auto of_width = [bytes](const auto& dtypes) -> std::optional<DType> {
    for (DType dtype : dtypes) {
      if (element_bytes(dtype) == static_cast<size_t>(bytes)) return dtype;
    }
    return std::nullopt;
  };
  if (std::string_view("bhilqn").find(format) != std::string_view::npos) return of_width(kSigned);
  if (std::string_view("BHILQN").find(format) != std::string_view::npos) return of_width(kUnsigned);
  if (format == 'e' && bytes == 2) return DType::kF16;
  if (format == 'f' && bytes == 4) return DType::kF32;
  if (format == '?' && bytes == 1) return DType::kBool;
  return std::nullopt;
}

struct NamedDType {
  std::string_view name;
  DType dtype;
  const char* same_width;  // The numpy type whose buffer holds the same bits.
};
constexpr NamedDType kMlDtypes[] = {
    {"bfloat16", DType::kBF16, "uint16"},
    {"float8_e4m3fn", DType::kF8E4M3, "uint8"},
    {"float8_e5m2", DType::kF8E5M2, "uint8"},
    {"float8_e8m0fnu", DType::kF8E8M0, "uint8"},
};

TensorView view_of(const Py_buffer& buffer, DType dtype) {
  TensorView view;
  view.dtype = dtype;
  view.base = static_cast<const std::byte*>(buffer.buf);
  view.shape.assign(buffer.shape, buffer.shape + buffer.ndim);
  if (buffer.strides != nullptr) {
    view.byte_strides.assign(buffer.strides, buffer.strides + buffer.ndim);
  }
  return view;
}

TensorView view_of(const dlpack::View& lent, DType dtype) {
  TensorView view;
  view.dtype = dtype;
  view.base = static_cast<const std::byte*>(lent.data) + lent.byte_offset;
  view.shape.assign(lent.shape, lent.shape + lent.ndim);
  for (int axis = 0; lent.strides != nullptr && axis < lent.ndim; ++axis) {
    view.byte_strides.push_back(lent.strides[axis] * static_cast<int64_t>(element_bytes(dtype)));
  }
  return view;
}

const dlpack::View* view_in(nb::handle capsule) {
  using dlpack::Managed, dlpack::ManagedVersioned;
  if (PyCapsule_IsValid(capsule.ptr(), Managed::kCapsule) != 0) {
    return &static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), Managed::kCapsule))->view;
  }
  if (PyCapsule_IsValid(capsule.ptr(), ManagedVersioned::kCapsule) == 0) return nullptr;
  auto* managed = static_cast<ManagedVersioned*>(
      PyCapsule_GetPointer(capsule.ptr(), ManagedVersioned::kCapsule));
  return managed->major == 1 ? &managed->view : nullptr;
}

// The capsule of `array`; invalid, with the Python error set, if it gives none.
nb::object ask_for_capsule(nb::handle array) {
  const nb::object method = nb::steal(PyObject_GetAttrString(array.ptr(), "__dlpack__"));
  if (!method.is_valid()) return {};
  const nb::dict options;
  options["max_version"] = nb::make_tuple(1, 0);
  const nb::tuple none;
  nb::object capsule = nb::steal(PyObject_Call(method.ptr(), none.ptr(), options.ptr()));
  if (capsule.is_valid() || PyErr_ExceptionMatches(PyExc_TypeError) == 0) return capsule;
  PyErr_Clear();  // A producer from before DLPack 1.0.
  return nb::steal(PyObject_Call(method.ptr(), none.ptr(), nullptr));
}

}  // namespace

BorrowedArrays::~BorrowedArrays() {
  for (const auto& buffer : buffers_) PyBuffer_Release(buffer.get());
}

const Py_buffer* BorrowedArrays::lend_buffer(nb::handle array) {
  auto buffer = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(array.ptr(), buffer.get(), PyBUF_FULL_RO) != 0) return nullptr;
  buffers_.push_back(std::move(buffer));
  return buffers_.back().get();
}

std::unique_ptr<TensorView> BorrowedArrays::from_buffer(nb::handle array, const Where& where) {
  const Py_buffer* buffer = lend_buffer(array);
  if (buffer == nullptr) return nullptr;
  std::string_view format = buffer->format == nullptr ? "B" : buffer->format;
  if (format.size() > 1 && (format[0] == '>' || format[0] == '!') && buffer->itemsize > 1) {
    raise_type_error(where, "dtype " + dtype_text(array, format) +
                                " is big-endian; convert the array to little-endian first");
  }
  if (format.size() == 2 && std::string_view("@=<>!").find(format[0]) != std::string_view::npos) {
    format.remove_prefix(1);
  }
  const auto dtype =
      format.size() == 1 ? dtype_of_format(format[0], buffer->itemsize) : std::nullopt;
  if (!dtype && !nb::hasattr(array, "__dlpack__")) raise_dtype(array, where, format);
  if (!dtype || buffer->suboffsets != nullptr) return nullptr;
  return std::make_unique<TensorView>(view_of(*buffer, *dtype));
}

std::unique_ptr<TensorView> BorrowedArrays::from_ml_dtypes(nb::handle array) {
  const nb::object dtype = nb::getattr(array, "dtype", nb::none());
  const nb::object name = nb::getattr(dtype, "name", nb::none());
  if (!nb::isinstance<nb::str>(name) || !nb::hasattr(array, "__array_interface__")) return nullptr;
  for (const NamedDType& named : kMlDtypes) {
    if (nb::cast<std::string>(name) != named.name) continue;
    const Py_buffer* buffer = lend_buffer(array.attr("view")(named.same_width));
    if (buffer == nullptr) throw nb::python_error();
    return std::make_unique<TensorView>(view_of(*buffer, named.dtype));
  }
  return nullptr;
}

TensorView BorrowedArrays::from_dlpack(nb::handle array, const Where& where) {
  nb::object capsule = ask_for_capsule(array);
  if (!capsule.is_valid()) {
    raise_type_error(where, described(array) + " does not lend its memory");
  }
  const dlpack::View* view = view_in(capsule);
  if (view == nullptr)
    raise_type_error(where, type_of(array) + " speaks an unknown DLPack version");
  const int32_t device = view->device.type;
  if (device != dlpack::kCpu && device != dlpack::kCudaHost && device != dlpack::kRocmHost) {
    raise_type_error(where, type_of(array) + " is in the memory of a GPU (DLPack device " +
                                std::to_string(device) + "); move it to the CPU first");
  }
  const auto dtype = dlpack::dtype_of(view->dtype);
  if (!dtype) raise_dtype(array, where, "of this array");
  capsules_.push_back(std::move(capsule));
  return view_of(*view, *dtype);
}

Tensor BorrowedArrays::borrow(nb::handle array, const Where& where) {
  if (nb::isinstance<Tensor>(array)) return nb::cast<const Tensor&>(array);
  std::unique_ptr<TensorView> view;
  if (PyObject_CheckBuffer(array.ptr()) != 0) {
    view = from_buffer(array, where);
    if (view == nullptr) {
      PyErr_Clear();
      view = from_ml_dtypes(array);
    }
  }
  if (view == nullptr && nb::hasattr(array, "__dlpack__")) {
    view = std::make_unique<TensorView>(from_dlpack(array, where));
  }
  if (view == nullptr) {
    raise_type_error(where,
                     "expected an array with DLPack or the buffer protocol, got " + type_of(array));
  }
  const auto tensor = as_tensor(*view);
  if (!tensor.ok()) raise_status(where, tensor.status());
  return *tensor;
}

}  // namespace kvkeep::python
