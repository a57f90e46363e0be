// How mistakes and failures become Python exceptions.
//
// Threads: with the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "kvkeep/status.h"

namespace kvkeep::python {

namespace nb = nanobind;

// Names a part of an argument, such as layers[3][0]. Costs nothing until somebody asks for the
// text.
//
// Ownership: refers to the Where it was made from, which must outlive it.
class Where {
 public:
  explicit Where(std::string_view name) : name_(name) {}
  Where at(size_t index) const { return {this, {}, index}; }                 // [3]
  Where at(std::string_view key) const { return {this, key, kNoIndex}; }     // ['norms']
  Where field(std::string_view name) const { return {this, name, kField}; }  // .elements
  std::string text() const;

 private:
  static constexpr size_t kNoIndex = static_cast<size_t>(-1);
  static constexpr size_t kField = static_cast<size_t>(-2);
  Where(const Where* parent, std::string_view name, size_t index)
      : parent_(parent), name_(name), index_(index) {}

  const Where* parent_ = nullptr;
  std::string_view name_;
  size_t index_ = kNoIndex;
};

// The name of an object's type, as it stands in messages.
std::string type_of(nb::handle object);

// "layers[3]: expected a pair, got str". The exception that was being handled, if any, becomes its
// cause.
[[noreturn]] void raise_type_error(const Where& where, std::string_view problem);
// A kvkeep.InvalidArgument, which is also a ValueError.
[[noreturn]] void raise_invalid(const Where& where, std::string_view problem);
// The class of kvkeep.Error that belongs to the code.
[[noreturn]] void raise_status(const Status& status);
[[noreturn]] void raise_status(const Where& where, const Status& status);

// Counts one level of nested lists. A list that contains itself ends as RecursionError.
class NestingLevel {
 public:
  NestingLevel() {
    if (Py_EnterRecursiveCall(" in nested layer states") != 0) throw nb::python_error();
  }
  ~NestingLevel() { Py_LeaveRecursiveCall(); }
  NestingLevel(const NestingLevel&) = delete;
  NestingLevel& operator=(const NestingLevel&) = delete;
};

template <typename T>
T value_or_raise(Result<T> result) {
  if (!result.ok()) raise_status(result.status());
  return *std::move(result);
}

}  // namespace kvkeep::python
