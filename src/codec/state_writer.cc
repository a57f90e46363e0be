#include "codec/state_writer.h"

#include <limits>

#include "base/bytes.h"
#include "codec/gather.h"
#include "codec/state_names.h"

namespace kvkeep {
namespace {

Status refused(Code code, std::string_view name, const std::string& why) {
  return Status(code, place_of(name) + ": " + why);
}

Status check_count(std::string_view name, size_t count, std::string_view what) {
  if (count <= kCountMax) return {};
  return refused(Code::kInvalidArgument, name,
                 std::to_string(count) + " " + std::string(what) + ", at most " +
                     std::to_string(kCountMax) + " can be stored");
}

bool is_f8(DType dtype) {
  return dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2 || dtype == DType::kF8E8M0;
}

std::string field_names(const PackedRecord& record) {
  std::string names;
  for (const auto& [name, tensor] : record.fields) {
    if (!names.empty()) names += ',';
    names += name;
  }
  return names;
}

Status check_record(const std::string& prefix, const PackedRecord& record) {
  const RecordType* type = find_record_type(record.type);
  if (type == nullptr || !type->storable) {
    return refused(Code::kUnimplemented, prefix,
                   "a TurboQuant record of type \"" + record.type + "\" cannot be stored");
  }
  std::string expected;
  for (const std::string_view field : type->fields) {
    if (!expected.empty()) expected += ',';
    expected += field;
  }
  if (field_names(record) == expected) return {};
  return refused(Code::kInvalidArgument, prefix,
                 record.type + " has the fields " + expected + ", not " + field_names(record));
}

}  // namespace

Status StateWriter::add_layer(size_t layer, const LayerState& state, std::string_view type) {
  const std::string prefix = layer_prefix(layer);
  if (const auto* list = std::get_if<CacheList>(&state)) return add_cache_list(prefix, *list);
  if (const auto* packed = std::get_if<TurboQuantState>(&state)) {
    if (type == kCacheListType) {
      return refused(Code::kInvalidArgument, prefix, "a TurboQuant state has the type CacheList");
    }
    return add_turboquant(prefix, *packed);
  }
  return add_nstate(prefix, std::get<NState>(state), 0);
}

Status StateWriter::add_nstate(const std::string& prefix, const NState& state, size_t depth) {
  if (!is_valid_utf8(state.class_name)) {
    return refused(Code::kInvalidArgument, prefix, "its class name is not UTF-8");
  }
  if (!state.class_name.empty())
    header_.add_metadata(prefix + "_state_class_name", state.class_name);
  return add_elements(prefix, state.elements, depth);
}

Status StateWriter::add_elements(const std::string& prefix, const std::vector<Element>& elements,
                                 size_t depth) {
  if (depth > kNestingMax) {
    return refused(Code::kInvalidArgument, prefix,
                   "nested deeper than " + std::to_string(kNestingMax) + " levels");
  }
  KVKEEP_TRY(check_count(prefix, elements.size(), "elements"));
  header_.add_metadata(prefix + "_state_count", std::to_string(elements.size()));
  for (size_t i = 0; i < elements.size(); ++i) {
    KVKEEP_TRY(add_element(element_name(prefix, i), elements[i], depth));
  }
  return {};
}

Status StateWriter::add_element(const std::string& name, const Element& element, size_t depth) {
  if (const auto* tensor = std::get_if<Tensor>(&element.v))
    return add_element_tensor(name, *tensor);
  if (const auto* tuple = std::get_if<ElementTuple>(&element.v)) {
    header_.add_metadata(name + "_nested", "tuple");
    return add_elements(name, tuple->elements, depth + 1);
  }
  if (const auto* state = std::get_if<NState>(&element.v)) {
    header_.add_metadata(name + "_nested", "nstate");
    return add_nstate(name, *state, depth + 1);
  }
  add_stand_in(name, DType::kF32);
  header_.add_metadata(name + "_none", "1");
  return {};
}

void StateWriter::add_stand_in(const std::string& name, DType dtype) {
  header_.add_tensor(name, dtype, {1});
  sources_.push_back(nullptr);
}

Status StateWriter::add_element_tensor(const std::string& name, const Tensor& tensor) {
  KVKEEP_TRY(check_tensor(name, tensor));
  if (byte_size(tensor.dtype, tensor.shape) != uint64_t{0}) {
    add_tensor(name, tensor);
    return {};
  }
  if (tensor.shape.size() > kZeroDimAxesMax) {
    return refused(Code::kInvalidArgument, name,
                   "a tensor without elements has " + std::to_string(tensor.shape.size()) +
                       " axes, at most " + std::to_string(kZeroDimAxesMax) + " can be stored");
  }
  add_stand_in(name, profile_ == Profile::kExtended ? tensor.dtype : DType::kF32);
  header_.add_metadata(name + "_zero_dim", zero_dim_text(tensor.shape));
  return {};
}

Status StateWriter::check_tensor(const std::string& name, const Tensor& tensor) const {
  const auto bytes = check_source(tensor);
  if (!bytes.ok()) return refused(bytes.status().code(), name, bytes.status().message());
  if (is_f8(tensor.dtype) && profile_ == Profile::kSeedExact) {
    return refused(Code::kUnimplemented, name,
                   std::string(name_of(tensor.dtype)) + " needs the extended profile");
  }
  // Room is left for stand-ins, which are 8 bytes at most.
  constexpr auto kDataBytesMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max() / 2);
  if (*bytes > kDataBytesMax || header_.data_bytes() > kDataBytesMax - *bytes) {
    return refused(Code::kInvalidArgument, name, "the block is too large");
  }
  return {};
}

void StateWriter::add_tensor(const std::string& name, const Tensor& tensor) {
  header_.add_tensor(name, tensor.dtype, tensor.shape);
  sources_.push_back(&tensor);
}

Status StateWriter::add_cache_list(const std::string& prefix, const CacheList& list) {
  KVKEEP_TRY(check_count(prefix, list.subs.size(), "sub-states"));
  header_.add_metadata(prefix + "_sub_count", std::to_string(list.subs.size()));
  for (size_t j = 0; j < list.subs.size(); ++j) {
    KVKEEP_TRY(add_nstate(sub_prefix(prefix, j), list.subs[j], 0));
  }
  return {};
}

Status StateWriter::add_turboquant(const std::string& prefix, const TurboQuantState& state) {
  KVKEEP_TRY(check_record(prefix, state.key));
  KVKEEP_TRY(check_record(prefix, state.value));
  KVKEEP_TRY(add_record(prefix + "_tq_k_", state.key));
  KVKEEP_TRY(add_record(prefix + "_tq_v_", state.value));
  header_.add_metadata(prefix + "_turboquant_v2", "1");
  header_.add_metadata(prefix + "_tq_key_type", state.key.type);
  header_.add_metadata(prefix + "_tq_value_type", state.value.type);
  header_.add_metadata(prefix + "_tq_key_fields", field_names(state.key));
  header_.add_metadata(prefix + "_tq_value_fields", field_names(state.value));
  return {};
}

Status StateWriter::add_record(const std::string& prefix, const PackedRecord& record) {
  for (const auto& [field, tensor] : record.fields) {
    const std::string name = prefix + field;
    KVKEEP_TRY(check_tensor(name, tensor));
    add_tensor(name, tensor);
  }
  return {};
}

}  // namespace kvkeep
