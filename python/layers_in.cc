#include <nanobind/stl/string.h>

#include "arguments.h"
#include "layers.h"

namespace kvkeep::python {
namespace {

bool is_sequence(nb::handle object) {
  return PyList_Check(object.ptr()) || PyTuple_Check(object.ptr());
}

class LayerReader {
 public:
  explicit LayerReader(BorrowedArrays& arrays) : arrays_(arrays) {
    const nb::module_ values = nb::module_::import_("kvkeep._values");
    nstate_ = values.attr("NState");
    cache_list_ = values.attr("CacheList");
    turboquant_ = values.attr("TurboQuant");
  }

  LayerState read(nb::handle layer, const Where& where) {
    if (nb::isinstance(layer, cache_list_)) return read_cache_list(layer, where);
    if (nb::isinstance(layer, turboquant_)) return read_turboquant(layer, where);
    return read_sub_state(
        layer, where,
        "a pair (keys, values), kvkeep.NState, kvkeep.CacheList or kvkeep.TurboQuant");
  }

 private:
  NState read_sub_state(nb::handle state, const Where& where, const std::string& expected) {
    if (nb::isinstance(state, nstate_)) return read_nstate(state, where);
    if (is_sequence(state) && nb::len(state) == 2) return read_pair(state, where);
    std::string found = type_of(state);
    if (is_sequence(state)) found += " of length " + std::to_string(nb::len(state));
    raise_type_error(where, "expected " + expected + ", got " + found);
  }

  NState read_pair(nb::handle pair, const Where& where) {
    NState state;
    for (nb::handle member : pair) {
      state.elements.push_back(read_leaf(member, where.at(state.elements.size())));
    }
    return state;
  }

  NState read_nstate(nb::handle object, const Where& where) {
    NState state;
    state.class_name = to_text(object.attr("class_name"), where.field("class_name"));
    state.elements = read_elements(object.attr("elements"), where.field("elements"));
    return state;
  }

  std::vector<Element> read_elements(nb::handle object, const Where& where) {
    const nb::object list =
        to_list(object, where, "a sequence of arrays, None, tuples and kvkeep.NState");
    const NestingLevel level;
    std::vector<Element> elements;
    for (nb::handle item : list) elements.push_back(read_element(item, where.at(elements.size())));
    return elements;
  }

  Element read_element(nb::handle object, const Where& where) {
    if (nb::isinstance(object, nstate_)) return {read_nstate(object, where)};
    if (is_sequence(object)) return {ElementTuple{read_elements(object, where)}};
    return read_leaf(object, where);
  }

  Element read_leaf(nb::handle object, const Where& where) {
    if (object.is_none()) return {Null{}};
    return {arrays_.borrow(object, where)};
  }

  CacheList read_cache_list(nb::handle object, const Where& where) {
    const Where at_subs = where.field("subs");
    const nb::object subs = to_list(object.attr("subs"), at_subs, "a sequence of sub-states");
    CacheList list;
    for (nb::handle sub : subs) {
      list.subs.push_back(read_sub_state(sub, at_subs.at(list.subs.size()),
                                         "a pair (keys, values) or kvkeep.NState"));
    }
    return list;
  }

  TurboQuantState read_turboquant(nb::handle object, const Where& where) {
    return {read_record(object.attr("key"), where.field("key")),
            read_record(object.attr("value"), where.field("value"))};
  }

  PackedRecord read_record(nb::handle object, const Where& where) {
    if (!is_sequence(object) || nb::len(object) != 2) {
      raise_type_error(where, "expected (record type, {field: array}), got " + type_of(object));
    }
    PackedRecord record;
    record.type = to_text(nb::object(object[0]), where.at(0));
    const nb::object fields = object[1];
    const Where at_fields = where.at(1);
    if (!PyDict_Check(fields.ptr())) {
      raise_type_error(at_fields, "expected a dict of arrays, got " + type_of(fields));
    }
    for (const auto& [name, array] : nb::borrow<nb::dict>(fields)) {
      const std::string text = to_text(name, at_fields.field("keys()"));
      record.fields.emplace_back(text, arrays_.borrow(array, at_fields.at(text)));
    }
    return record;
  }

  BorrowedArrays& arrays_;
  nb::object nstate_;
  nb::object cache_list_;
  nb::object turboquant_;
};

}  // namespace

std::vector<LayerState> to_layers(nb::handle layers, BorrowedArrays& arrays) {
  const Where where("layers");
  const nb::object list = to_list(layers, where, "a sequence with one state per layer");
  LayerReader reader(arrays);
  std::vector<LayerState> states;
  states.reserve(nb::len(list));
  for (nb::handle layer : list) states.push_back(reader.read(layer, where.at(states.size())));
  return states;
}

}  // namespace kvkeep::python
