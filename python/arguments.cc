#include "arguments.h"

#include <nanobind/stl/string.h>

#include <cmath>
#include <limits>

#include "kvkeep/size_string.h"

namespace kvkeep::python {
namespace {

// Far more than anybody waits, and far less than what a Duration can hold.
constexpr double kMaxSeconds = 3.0e9;

std::string got(std::string_view expected, nb::handle object) {
  return "expected " + std::string(expected) + ", got " + type_of(object);
}

// `object` as an exact int; none (with no error set) if it is out of range.
std::optional<int64_t> as_int64(nb::handle object, const Where& where) {
  if (PyBool_Check(object.ptr()) || !PyIndex_Check(object.ptr())) {
    raise_type_error(where, got("an integer", object));
  }
  const nb::object exact = nb::steal(PyNumber_Index(object.ptr()));
  if (!exact.is_valid()) throw nb::python_error();
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(exact.ptr(), &overflow);
  if (overflow != 0) return std::nullopt;
  return value;
}

[[noreturn]] void raise_range(nb::handle object, const Where& where, std::string_view range) {
  raise_invalid(where,
                nb::cast<std::string>(nb::str(object)) + " is outside " + std::string(range));
}

MetaValue to_meta_value(nb::handle object, const Where& where);

std::vector<MetaValue> to_meta_list(nb::handle object, const Where& where) {
  if (!PyList_Check(object.ptr()) && !PyTuple_Check(object.ptr())) {
    raise_type_error(where,
                     got("a list or tuple of None, bool, int, float, str and lists", object));
  }
  const NestingLevel level;
  std::vector<MetaValue> values;
  size_t index = 0;
  for (nb::handle item : object) values.push_back(to_meta_value(item, where.at(index++)));
  return values;
}

MetaValue to_meta_value(nb::handle object, const Where& where) {
  if (object.is_none()) return {nullptr};
  if (PyBool_Check(object.ptr())) return {object.ptr() == Py_True};
  if (PyFloat_Check(object.ptr())) return {PyFloat_AS_DOUBLE(object.ptr())};
  if (PyUnicode_Check(object.ptr())) return {to_text(object, where)};
  if (PyIndex_Check(object.ptr())) return {to_int64(object, where)};
  return {to_meta_list(object, where)};
}

nb::object from_meta_value(const MetaValue& value) {
  return std::visit(
      [](const auto& v) -> nb::object {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::nullptr_t>) {
          return nb::none();
        } else if constexpr (std::is_same_v<T, std::vector<MetaValue>>) {
          nb::list items;
          for (const MetaValue& item : v) items.append(from_meta_value(item));
          return items;
        } else {
          return nb::cast(v);
        }
      },
      value.v);
}

}  // namespace

bool to_bool(nb::handle object, const Where& where) {
  if (!PyBool_Check(object.ptr())) raise_type_error(where, got("a bool", object));
  return object.ptr() == Py_True;
}

int64_t to_int64(nb::handle object, const Where& where) {
  const auto value = as_int64(object, where);
  if (!value) raise_range(object, where, "-2**63 ... 2**63 - 1");
  return *value;
}

uint32_t to_uint32(nb::handle object, const Where& where) {
  const auto value = as_int64(object, where);
  if (!value || *value < 0 || *value > std::numeric_limits<uint32_t>::max()) {
    raise_range(object, where, "0 ... 4294967295");
  }
  return static_cast<uint32_t>(*value);
}

double to_double(nb::handle object, const Where& where) {
  const bool number = PyFloat_Check(object.ptr()) || PyIndex_Check(object.ptr());
  if (!number || PyBool_Check(object.ptr())) {
    raise_type_error(where, got("an int or a float", object));
  }
  const double value = PyFloat_AsDouble(object.ptr());
  if (value == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return value;
}

std::string to_text(nb::handle object, const Where& where) {
  if (!PyUnicode_Check(object.ptr())) raise_type_error(where, got("a str", object));
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
  if (text == nullptr) {
    PyErr_Clear();
    raise_invalid(where, "holds characters that have no UTF-8 form");
  }
  return std::string(text, static_cast<size_t>(size));
}

uint64_t to_size(nb::handle object, const Where& where) {
  if (PyUnicode_Check(object.ptr())) {
    const auto size = parse_size(to_text(object, where));
    if (!size.ok()) raise_status(where, size.status());
    return *size;
  }
  if (PyBool_Check(object.ptr()) || !PyIndex_Check(object.ptr())) {
    raise_type_error(where, got("bytes as an int, or a size such as '50GB'", object));
  }
  const auto size = as_int64(object, where);
  if (!size || *size < 0) raise_range(object, where, "0 ... 2**63 - 1");
  return static_cast<uint64_t>(*size);
}

Duration to_duration(nb::handle object, const Where& where) {
  const double seconds = to_double(object, where);
  if (!std::isfinite(seconds) || seconds < 0) {
    raise_invalid(where, "must be a finite number of seconds, 0 or more");
  }
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::min(seconds, kMaxSeconds)));
}

BlockHash to_key(nb::handle object, const Where& where) {
  Py_buffer view;
  if (PyUnicode_Check(object.ptr()) || !PyObject_CheckBuffer(object.ptr()) ||
      PyObject_GetBuffer(object.ptr(), &view, PyBUF_SIMPLE) != 0) {
    raise_type_error(where, got("a key of 1 to 119 bytes (bytes, bytearray, memoryview)", object));
  }
  const auto key = BlockHash::from_bytes(
      {static_cast<const std::byte*>(view.buf), static_cast<size_t>(view.len)});
  PyBuffer_Release(&view);
  if (!key.ok()) raise_status(where, key.status());
  return *key;
}

nb::object to_list(nb::handle object, const Where& where, std::string_view expected) {
  const bool text = PyUnicode_Check(object.ptr()) || PyBytes_Check(object.ptr()) ||
                    PyByteArray_Check(object.ptr());
  nb::object list;
  if (!text) list = nb::steal(PySequence_Fast(object.ptr(), "not iterable"));
  if (list.is_valid()) return list;
  if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_TypeError) == 0) {
    throw nb::python_error();
  }
  PyErr_Clear();
  raise_type_error(where, got(expected, object));
}

std::vector<BlockHash> to_keys(nb::handle object, const Where& where) {
  const nb::object list = to_list(object, where, "a sequence of keys");
  std::vector<BlockHash> keys;
  keys.reserve(nb::len(list));
  for (nb::handle item : list) keys.push_back(to_key(item, where.at(keys.size())));
  return keys;
}

HashSet to_key_set(nb::handle object, const Where& where) {
  const std::vector<BlockHash> keys = to_keys(object, where);
  return HashSet(keys.begin(), keys.end());
}

std::vector<std::string> to_texts(nb::handle object, const Where& where) {
  const nb::object list = to_list(object, where, "a sequence of str");
  std::vector<std::string> texts;
  for (nb::handle item : list) texts.push_back(to_text(item, where.at(texts.size())));
  return texts;
}

std::map<std::string, std::string> to_text_map(nb::handle object, const Where& where) {
  if (!PyMapping_Check(object.ptr()) || !nb::hasattr(object, "items")) {
    raise_type_error(where, got("a mapping of str to str", object));
  }
  std::map<std::string, std::string> map;
  for (nb::handle item : object.attr("items")()) {
    const std::string name = to_text(nb::object(item[0]), where.field("keys()"));
    map[name] = to_text(nb::object(item[1]), where.at(name));
  }
  return map;
}

std::vector<MetaState> to_meta_states(nb::handle object, const Where& where) {
  const nb::object list = to_list(object, where, "a sequence with one list per layer");
  std::vector<MetaState> states;
  for (nb::handle item : list) states.push_back(to_meta_list(item, where.at(states.size())));
  return states;
}

nb::bytes from_key(const BlockHash& key) {
  return nb::bytes(key.bytes().data(), key.bytes().size());
}

nb::list from_keys(const std::vector<BlockHash>& keys) {
  nb::list list;
  for (const BlockHash& key : keys) list.append(from_key(key));
  return list;
}

nb::object from_meta_states(const std::optional<std::vector<MetaState>>& states) {
  if (!states) return nb::none();
  nb::list list;
  for (const MetaState& state : *states) list.append(from_meta_value({state}));
  return list;
}

}  // namespace kvkeep::python
