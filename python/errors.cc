#include "errors.h"

#include <nanobind/stl/string.h>

namespace kvkeep::python {
namespace {

[[noreturn]] void raise_new(const Status& status, const std::string& message) {
  std::string_view reason;
  if (const auto miss = status.miss_reason()) reason = name_of(*miss);
  if (const auto refusal = status.refusal()) reason = name_of(*refusal);
  const nb::object error = nb::module_::import_("kvkeep._errors")
                               .attr("from_status")(std::string(name_of(status.code())), message,
                                                    std::string(reason), status.sys_errno());
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  throw nb::python_error();
}

}  // namespace

std::string Where::text() const {
  if (parent_ == nullptr) return std::string(name_);
  if (index_ == kField) return parent_->text() + "." + std::string(name_);
  if (index_ == kNoIndex) return parent_->text() + "['" + std::string(name_) + "']";
  return parent_->text() + "[" + std::to_string(index_) + "]";
}

std::string type_of(nb::handle object) {
  return nb::cast<std::string>(object.type().attr("__name__"));
}

void raise_type_error(const Where& where, std::string_view problem) {
  const std::string message = where.text() + ": " + std::string(problem);
  if (PyErr_Occurred() != nullptr) {
    nb::python_error cause;
    nb::raise_from(cause, PyExc_TypeError, "%s", message.c_str());
  }
  PyErr_SetString(PyExc_TypeError, message.c_str());
  throw nb::python_error();
}

void raise_invalid(const Where& where, std::string_view problem) {
  raise_status(where, Status(Code::kInvalidArgument, std::string(problem)));
}

void raise_status(const Status& status) { raise_new(status, status.message()); }

void raise_status(const Where& where, const Status& status) {
  raise_new(status, where.text() + ": " + status.message());
}

}  // namespace kvkeep::python
