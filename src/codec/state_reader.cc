#include "codec/state_reader.h"

#include <charconv>

#include "codec/state_names.h"

namespace kvkeep {
namespace {

Status broken(std::string_view name, std::string_view why) {
  return damaged(place_of(name) + ": " + std::string(why));
}

// A count as the format writes it: 0 … 1,000,000.
std::optional<uint64_t> parse_count(std::string_view text) {
  uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count > kCountMax) {
    return std::nullopt;
  }
  return count;
}

class StateReader {
 public:
  StateReader(const SafetensorsHeader& header, BytesView data) : header_(header), data_(data) {}

  Result<LayerState> read_layer(size_t layer, std::string_view type);
  uint32_t misaligned_tensors() const { return misaligned_tensors_; }

 private:
  const std::string* value(std::string_view prefix, std::string_view suffix) {
    key_.assign(prefix);
    key_ += suffix;
    return header_.value(key_);
  }
  bool is_cache_list(const std::string& prefix, std::string_view type);
  Result<NState> read_nstate(const std::string& prefix, std::string_view fallback_class);
  Result<NState> read_legacy_pair(const std::string& prefix);
  Status read_elements(const std::string& prefix, size_t depth, std::vector<Element>& out);
  Result<Element> read_element(const std::string& name, size_t depth);
  Result<Element> read_nested(const std::string& name, const std::string& kind, size_t depth);
  Result<Tensor> read_tensor(const std::string& name);
  Result<Tensor> view(const std::string& name);
  Result<LayerState> read_cache_list(const std::string& prefix);
  Result<LayerState> read_turboquant(const std::string& prefix);
  Result<PackedRecord> read_record(const std::string& prefix, std::string_view side,
                                   std::string_view tensors);

  const SafetensorsHeader& header_;
  BytesView data_;
  std::string key_;  // Scratch of value().
  uint32_t misaligned_tensors_ = 0;
};

Result<LayerState> StateReader::read_layer(size_t layer, std::string_view type) {
  const std::string prefix = layer_prefix(layer);
  if (is_cache_list(prefix, type)) return read_cache_list(prefix);
  if (type != kCacheListType && value(prefix, "_turboquant_v2") != nullptr) {
    return read_turboquant(prefix);
  }
  KVKEEP_TRY_ASSIGN(NState state, read_nstate(prefix, type));
  return LayerState(std::move(state));
}

// A cache list shows by its sub-count. A layer with a state of its own is that state, unless its
// type says otherwise: the seed writes a count of 0 beside nothing, and placeholders without a
// count.
bool StateReader::is_cache_list(const std::string& prefix, std::string_view type) {
  const std::string* text = value(prefix, "_sub_count");
  if (text == nullptr) return false;
  const auto count = parse_count(*text);
  if (count && *count > 0 && type == kCacheListType) return true;
  const bool has_state = value(prefix, "_state_count") != nullptr ||
                         header_.find(prefix + "_keys") != nullptr ||
                         value(prefix, "_turboquant_v2") != nullptr;
  return !has_state;
}

Result<LayerState> StateReader::read_cache_list(const std::string& prefix) {
  const auto count = parse_count(*value(prefix, "_sub_count"));
  if (!count) return broken(prefix, "the number of sub-states is not a count");
  CacheList list;
  for (uint64_t j = 0; j < *count; ++j) {
    KVKEEP_TRY_ASSIGN(NState sub, read_nstate(sub_prefix(prefix, j), ""));
    list.subs.push_back(std::move(sub));
  }
  return LayerState(std::move(list));
}

Result<NState> StateReader::read_nstate(const std::string& prefix,
                                        std::string_view fallback_class) {
  if (value(prefix, "_state_count") == nullptr) return read_legacy_pair(prefix);
  NState state;
  if (const std::string* name = value(prefix, "_state_class_name")) state.class_name = *name;
  KVKEEP_TRY(read_elements(prefix, 0, state.elements));
  if (state.class_name.empty() && !is_pair(state)) state.class_name = fallback_class;
  return state;
}

Result<NState> StateReader::read_legacy_pair(const std::string& prefix) {
  KVKEEP_TRY_ASSIGN(Tensor keys, read_tensor(prefix + "_keys"));
  KVKEEP_TRY_ASSIGN(Tensor values, read_tensor(prefix + "_values"));
  return make_pair_state(std::move(keys), std::move(values));
}

Status StateReader::read_elements(const std::string& prefix, size_t depth,
                                  std::vector<Element>& out) {
  if (depth > kNestingMax) return broken(prefix, "nested too deep");
  const std::string* text = value(prefix, "_state_count");
  const auto count = text != nullptr ? parse_count(*text) : std::nullopt;
  if (!count) return broken(prefix, "the number of elements is not a count");
  for (uint64_t i = 0; i < *count; ++i) {
    KVKEEP_TRY_ASSIGN(Element element, read_element(element_name(prefix, i), depth));
    out.push_back(std::move(element));
  }
  return {};
}

Result<Element> StateReader::read_element(const std::string& name, size_t depth) {
  if (value(name, "_none") != nullptr) return Element{Null{}};
  if (const std::string* kind = value(name, "_nested")) return read_nested(name, *kind, depth + 1);
  KVKEEP_TRY_ASSIGN(Tensor tensor, read_tensor(name));
  return Element{std::move(tensor)};
}

Result<Element> StateReader::read_nested(const std::string& name, const std::string& kind,
                                         size_t depth) {
  if (kind == "tuple") {
    ElementTuple tuple;
    KVKEEP_TRY(read_elements(name, depth, tuple.elements));
    return Element{std::move(tuple)};
  }
  if (kind != "nstate") return broken(name, "nested in a way that is not known");
  NState state;
  if (const std::string* class_name = value(name, "_state_class_name"))
    state.class_name = *class_name;
  KVKEEP_TRY(read_elements(name, depth, state.elements));
  return Element{std::move(state)};
}

Result<Tensor> StateReader::read_tensor(const std::string& name) {
  const std::string* zero_dim = value(name, "_zero_dim");
  if (zero_dim == nullptr) return view(name);
  const TensorEntry* stand_in = header_.find(name);
  if (stand_in == nullptr) return broken(name, "its tensor is missing");
  auto shape = parse_zero_dim(*zero_dim);
  if (!shape) return broken(name, "the shape of a tensor without elements is malformed");
  Tensor tensor;
  tensor.dtype = stand_in->dtype;
  tensor.shape = std::move(*shape);
  return tensor;
}

Result<Tensor> StateReader::view(const std::string& name) {
  const TensorEntry* entry = header_.find(name);
  if (entry == nullptr) return broken(name, "its tensor is missing");
  const BytesView bytes = data_.subspan(entry->begin, entry->end - entry->begin);
  const auto address = reinterpret_cast<uintptr_t>(bytes.data());
  if (bytes.empty() || address % element_bytes(entry->dtype) == 0) {
    Tensor tensor;
    tensor.dtype = entry->dtype;
    tensor.shape = entry->shape;
    tensor.data.view = bytes;
    return tensor;
  }
  ++misaligned_tensors_;
  return tensor_from_bytes(bytes, entry->dtype, entry->shape);
}

Result<LayerState> StateReader::read_turboquant(const std::string& prefix) {
  TurboQuantState state;
  KVKEEP_TRY_ASSIGN(state.key, read_record(prefix, "_tq_key", "_tq_k_"));
  KVKEEP_TRY_ASSIGN(state.value, read_record(prefix, "_tq_value", "_tq_v_"));
  return LayerState(std::move(state));
}

Result<PackedRecord> StateReader::read_record(const std::string& prefix, std::string_view side,
                                              std::string_view tensors) {
  const std::string* type_name = value(prefix, std::string(side) + "_type");
  const RecordType* type = type_name != nullptr ? find_record_type(*type_name) : nullptr;
  if (type == nullptr) return broken(prefix, "the type of a TurboQuant record is not known");
  PackedRecord record;
  record.type = type->name;
  std::string listed;
  for (const std::string_view field : type->fields) {
    listed += (listed.empty() ? "" : ",") + std::string(field);
    KVKEEP_TRY_ASSIGN(Tensor tensor, view(prefix + std::string(tensors) + std::string(field)));
    record.fields.emplace_back(field, std::move(tensor));
  }
  const std::string* fields = value(prefix, std::string(side) + "_fields");
  if (fields == nullptr || *fields != listed) {
    return broken(prefix, "the fields of a TurboQuant record are not those of its type");
  }
  return record;
}

}  // namespace

Result<RebuiltLayers> rebuild_layers(const SafetensorsHeader& header, const BlockInfo& info,
                                     BytesView data) {
  if (info.num_layers == 0 && !header.tensors().empty()) {
    return damaged("the block has tensors but no layers");
  }
  StateReader reader(header, data);
  RebuiltLayers rebuilt;
  for (uint32_t i = 0; i < info.num_layers; ++i) {
    const bool typed = info.layer_types && i < info.layer_types->size();
    KVKEEP_TRY_ASSIGN(LayerState layer,
                      reader.read_layer(i, typed ? (*info.layer_types)[i] : std::string_view()));
    rebuilt.layers.push_back(std::move(layer));
  }
  rebuilt.misaligned_tensors = reader.misaligned_tensors();
  return rebuilt;
}

}  // namespace kvkeep
