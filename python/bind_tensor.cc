#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "arguments.h"
#include "bindings.h"
#include "dlpack.h"
#include "errors.h"
#include "kvkeep/tensor.h"
#include "tensor_export.h"

namespace kvkeep::python {
namespace {

nb::tuple shape_of(const Tensor& tensor) {
  nb::list axes;
  for (uint64_t axis : tensor.shape) axes.append(axis);
  return nb::tuple(axes);
}

nb::object raw(const Tensor& tensor) {
  const nb::object exporter = nb::cast(RawBytes{tensor.data});
  nb::object view = nb::steal(PyMemoryView_FromObject(exporter.ptr()));
  if (!view.is_valid()) throw nb::python_error();
  return view;
}

std::string repr(const Tensor& tensor) {
  std::string axes;
  for (uint64_t axis : tensor.shape) axes += (axes.empty() ? "" : ", ") + std::to_string(axis);
  return "kvkeep.Tensor(" + std::string(name_of(tensor.dtype)) + ", [" + axes + "])";
}

[[noreturn]] void raise_buffer_error(const char* message) {
  PyErr_SetString(PyExc_BufferError, message);
  throw nb::python_error();
}

// "At least version 1.0" is what makes the read-only flag known to the consumer.
bool knows_read_only(nb::handle max_version) {
  if (max_version.is_none()) return false;
  return to_int64(nb::object(max_version[0]), Where("max_version").at(0)) >= 1;
}

nb::object dlpack_capsule(const Tensor& tensor, nb::handle max_version, nb::handle device,
                          nb::handle copy) {
  if (!device.is_none() && !device.equal(nb::make_tuple(dlpack::kCpu, 0))) {
    raise_buffer_error("a kvkeep.Tensor is in the memory of the CPU: dl_device must be (1, 0)");
  }
  DlpackRequest request;
  request.versioned = knows_read_only(max_version);
  request.copy = !copy.is_none() && to_bool(copy, Where("copy"));
  if (!copy.is_none() && !request.copy && !request.versioned) {
    raise_buffer_error(
        "without a copy only to consumers of DLPack 1.0 or later: the tensor is read-only");
  }
  return to_dlpack(tensor, request);
}

nb::object as_numpy(nb::handle tensor, nb::handle dtype, nb::handle copy) {
  return nb::module_::import_("kvkeep._numpy").attr("as_array")(tensor, dtype, copy);
}

constexpr const char* kTensorDoc =
    "An array of a loaded block: a read-only view into the block's image, which it keeps alive.\n\n"
    "Tensors may outlive their cache and be used from any thread. numpy.asarray(t),\n"
    "numpy.from_dlpack(t), torch.from_dlpack(t) and mlx.core.array(t) read it; consumers that know "
    "no\n"
    "read-only tensors get a copy. BF16 and F8 have no buffer format: numpy needs the package "
    "ml_dtypes\n"
    "for them.";

}  // namespace

void bind_tensor(nb::module_& module) {
  nb::class_<RawBytes>(module, "_RawBytes", nb::type_slots(raw_bytes_slots()));
  nb::class_<Tensor>(module, "Tensor", nb::type_slots(tensor_slots()), kTensorDoc)
      .def_prop_ro(
          "dtype", [](const Tensor& t) { return std::string(name_of(t.dtype)); },
          "Name of the element type as in safetensors: 'BF16', 'F16', 'F32', 'I8', …")
      .def_prop_ro("shape", shape_of, "Axis lengths, outermost first; () for a scalar.")
      .def_prop_ro(
          "nbytes", [](const Tensor& t) { return t.data.view.size(); }, "Bytes of all elements.")
      .def_prop_ro("raw", raw, "The bytes, row-major and little-endian, as a read-only memoryview.")
      .def("__repr__", repr)
      .def("__dlpack_device__", [](const Tensor&) { return nb::make_tuple(dlpack::kCpu, 0); })
      .def(
          "__dlpack__",
          [](const Tensor& t, nb::handle, nb::handle max_version, nb::handle dl_device,
             nb::handle copy) { return dlpack_capsule(t, max_version, dl_device, copy); },
          nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
          nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none(),
          "A DLPack capsule: read-only and without a copy for max_version >= (1, 0), else a "
          "copy.\n\n"
          "BufferError for another device, or for copy=False where only a copy is possible.")
      .def("__array__", as_numpy, nb::arg("dtype") = nb::none(), nb::kw_only(),
           nb::arg("copy") = nb::none(),
           "For numpy.asarray(). TypeError for BF16 and F8 without ml_dtypes.");
}

}  // namespace kvkeep::python
