#include "tensor_export.h"

#include <memory>
#include <string>
#include <vector>

#include "dlpack.h"
#include "errors.h"

namespace kvkeep::python {
namespace {

const char* struct_format(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return "e";
    case DType::kF32:
      return "f";
    case DType::kI8:
      return "b";
    case DType::kI16:
      return "h";
    case DType::kI32:
      return "i";
    case DType::kI64:
      return "q";
    case DType::kU8:
      return "B";
    case DType::kU16:
      return "H";
    case DType::kU32:
      return "I";
    case DType::kU64:
      return "Q";
    case DType::kBool:
      return "?";
    case DType::kBF16:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
    case DType::kF8E8M0:
      return nullptr;
  }
  return nullptr;
}

// Never null: some consumers take a null pointer for an error, also where there are no bytes.
void* address(BytesView bytes) {
  static std::byte none;
  return bytes.empty() ? &none : const_cast<std::byte*>(bytes.data());
}

// Row-major, in elements.
std::vector<int64_t> strides_of(const Shape& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t step = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = step;
    step *= static_cast<int64_t>(shape[axis] == 0 ? 1 : shape[axis]);
  }
  return strides;
}

struct BufferAxes {
  std::vector<Py_ssize_t> shape;
  std::vector<Py_ssize_t> strides;
};

int refuse(Py_buffer* view, const std::string& why) {
  view->obj = nullptr;
  PyErr_SetString(PyExc_BufferError, why.c_str());
  return -1;
}

int get_tensor_buffer(PyObject* self, Py_buffer* view, int flags) {
  const auto& tensor = *nb::inst_ptr<Tensor>(self);
  const char* format = struct_format(tensor.dtype);
  if ((flags & PyBUF_WRITABLE) != 0) return refuse(view, "a kvkeep.Tensor is read-only");
  if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && tensor.shape.size() > 1) {
    return refuse(view, "a kvkeep.Tensor is row-major");
  }
  if ((flags & PyBUF_FORMAT) != 0 && format == nullptr) {
    return refuse(view, std::string(name_of(tensor.dtype)) +
                            " has no buffer format: use .raw, DLPack, or numpy.asarray() with the "
                            "package ml_dtypes installed");
  }
  auto axes = std::make_unique<BufferAxes>();
  const auto item = static_cast<Py_ssize_t>(element_bytes(tensor.dtype));
  axes->shape.assign(tensor.shape.begin(), tensor.shape.end());
  for (int64_t stride : strides_of(tensor.shape)) axes->strides.push_back(stride * item);

  Py_INCREF(self);
  view->obj = self;
  view->buf = address(tensor.data.view);
  view->len = static_cast<Py_ssize_t>(tensor.data.view.size());
  view->readonly = 1;
  view->itemsize = item;
  view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(format) : nullptr;
  const bool with_axes = (flags & PyBUF_ND) != 0;  // Else a flat run of bytes.
  view->ndim = with_axes ? static_cast<int>(tensor.shape.size()) : 1;
  view->shape = with_axes ? axes->shape.data() : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? axes->strides.data() : nullptr;
  view->suboffsets = nullptr;
  view->internal = axes.release();
  return 0;
}

void release_tensor_buffer(PyObject*, Py_buffer* view) {
  delete static_cast<BufferAxes*>(view->internal);
}

int get_raw_buffer(PyObject* self, Py_buffer* view, int flags) {
  const BytesView bytes = nb::inst_ptr<RawBytes>(self)->bytes.view;
  return PyBuffer_FillInfo(view, self, address(bytes), static_cast<Py_ssize_t>(bytes.size()), 1,
                           flags);
}

template <typename Managed>
struct Lent {
  Tensor tensor;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  Managed managed{};
};

template <typename Managed>
void free_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, Managed::kCapsule) == 0) return;  // Its consumer frees the tensor.
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, Managed::kCapsule));
  managed->deleter(managed);
}

template <typename Managed>
std::unique_ptr<Lent<Managed>> lend(Tensor tensor) {
  auto lent = std::make_unique<Lent<Managed>>();
  lent->shape.assign(tensor.shape.begin(), tensor.shape.end());
  lent->strides = strides_of(tensor.shape);
  dlpack::View& view = lent->managed.view;
  view.data = address(tensor.data.view);
  view.device = {dlpack::kCpu, 0};
  view.ndim = static_cast<int32_t>(lent->shape.size());
  view.dtype = dlpack::data_type(tensor.dtype);
  view.shape = lent->shape.data();
  view.strides = lent->strides.data();
  lent->tensor = std::move(tensor);
  lent->managed.context = lent.get();
  // May be called without the GIL; it touches no Python object.
  lent->managed.deleter = [](Managed* self) { delete static_cast<Lent<Managed>*>(self->context); };
  return lent;
}

template <typename Managed>
nb::object into_capsule(std::unique_ptr<Lent<Managed>> lent) {
  nb::object capsule =
      nb::steal(PyCapsule_New(&lent->managed, Managed::kCapsule, free_capsule<Managed>));
  if (!capsule.is_valid()) throw nb::python_error();
  static_cast<void>(lent.release());
  return capsule;
}

}  // namespace

PyType_Slot* tensor_slots() {
  static PyType_Slot slots[] = {
      {Py_bf_getbuffer, reinterpret_cast<void*>(get_tensor_buffer)},
      {Py_bf_releasebuffer, reinterpret_cast<void*>(release_tensor_buffer)},
      {0, nullptr}};
  return slots;
}

PyType_Slot* raw_bytes_slots() {
  static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_raw_buffer)},
                                {0, nullptr}};
  return slots;
}

nb::object to_dlpack(const Tensor& tensor, DlpackRequest request) {
  const bool copy = request.copy || !request.versioned;
  Tensor own = tensor;
  if (copy) own = value_or_raise(tensor_from_bytes(tensor.data.view, tensor.dtype, tensor.shape));
  if (!request.versioned) return into_capsule(lend<dlpack::Managed>(std::move(own)));

  auto lent = lend<dlpack::ManagedVersioned>(std::move(own));
  lent->managed.major = 1;
  lent->managed.minor = 0;
  lent->managed.flags =
      copy ? dlpack::ManagedVersioned::kCopied : dlpack::ManagedVersioned::kReadOnly;
  return into_capsule(std::move(lent));
}

}  // namespace kvkeep::python
