#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "arguments.h"
#include "layers.h"

namespace kvkeep::python {
namespace {

class BlockWriter {
 public:
  BlockWriter()
      : values_(nb::module_::import_("kvkeep._values")), nstate_(values_.attr("NState")) {}

  nb::object write_block(LoadedBlock block) const {
    nb::list layers;
    for (LayerState& layer : block.layers) {
      layers.append(std::visit([this](auto& state) { return write(state); }, layer));
    }
    nb::dict fields;
    fields["layers"] = layers;
    add_info(fields, block.info);
    fields["source"] = std::string(name_of(block.source));
    return values_.attr("Block")(**fields);
  }

 private:
  nb::object write(NState& state) const {
    const bool pair = is_pair(state) && state.class_name.empty();
    nb::object elements = write_elements(state.elements);
    return pair ? elements : nstate_(elements, state.class_name);
  }

  nb::object write(CacheList& list) const {
    nb::list subs;
    for (NState& sub : list.subs) subs.append(write(sub));
    return values_.attr("CacheList")(nb::tuple(subs));
  }

  nb::object write(TurboQuantState& state) const {
    return values_.attr("TurboQuant")(write_record(state.key), write_record(state.value));
  }

  nb::object write_elements(std::vector<Element>& elements) const {
    nb::list items;
    for (Element& element : elements) items.append(write_element(element));
    return nb::tuple(items);
  }

  nb::object write_element(Element& element) const {
    if (auto* tensor = std::get_if<Tensor>(&element.v)) return nb::cast(std::move(*tensor));
    if (auto* tuple = std::get_if<ElementTuple>(&element.v)) return write_elements(tuple->elements);
    if (auto* nested = std::get_if<NState>(&element.v)) {
      return nstate_(write_elements(nested->elements), nested->class_name);
    }
    return nb::none();
  }

  static nb::object write_record(PackedRecord& record) {
    nb::dict fields;
    for (auto& [name, tensor] : record.fields) fields[name.c_str()] = nb::cast(std::move(tensor));
    return nb::make_tuple(record.type, fields);
  }

  nb::module_ values_;
  nb::object nstate_;
};

}  // namespace

void add_info(nb::dict& fields, const BlockInfo& info) {
  fields["token_count"] = info.token_count;
  fields["model_name"] = info.model_name;
  fields["block_size"] = info.block_size;
  fields["signature"] = info.signature;
  fields["layer_types"] = info.layer_types;
  fields["meta_states"] = from_meta_states(info.meta_states);
  fields["parent"] = info.parent ? nb::object(from_key(*info.parent)) : nb::none();
}

nb::object from_block(LoadedBlock block) { return BlockWriter().write_block(std::move(block)); }

}  // namespace kvkeep::python
