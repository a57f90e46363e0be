#include "testing/block_compare.h"

#include <cstring>
#include <optional>

#include "codec/meta_state.h"
#include "hash/signature.h"

namespace kvkeep::testing {
namespace {

std::string differs(const std::string& place, const std::string& saved, const std::string& loaded) {
  return place + ": saved " + saved + ", loaded " + loaded;
}

std::string shown(const Tensor& tensor) {
  std::string text(name_of(tensor.dtype));
  for (const uint64_t length : tensor.shape) text += " " + std::to_string(length);
  return text;
}

// The address of element [0, 0, …] of a tensor as it is saved.
const std::byte* first_element(const Tensor& tensor) {
  const std::byte* at = tensor.data.view.data();
  for (size_t i = 0; i < tensor.byte_strides.size(); ++i) {
    if (tensor.byte_strides[i] < 0) {
      at -= tensor.byte_strides[i] * static_cast<int64_t>(tensor.shape[i] - 1);
    }
  }
  return at;
}

// Where the element with row-major number `n` lies.
const std::byte* element_at(const Tensor& tensor, uint64_t n) {
  if (tensor.byte_strides.empty()) return tensor.data.view.data() + n * element_bytes(tensor.dtype);
  const std::byte* at = first_element(tensor);
  for (size_t i = tensor.shape.size(); i-- > 0;) {
    at += tensor.byte_strides[i] * static_cast<int64_t>(n % tensor.shape[i]);
    n /= tensor.shape[i];
  }
  return at;
}

class Comparison {
 public:
  explicit Comparison(Profile profile) : profile_(profile) {}

  std::string layer(const std::string& place, const LayerState& saved, const LayerState& loaded,
                    const std::string& type) const;

 private:
  std::string tensor(const std::string& place, const Tensor& saved, const Tensor& loaded,
                     bool zero_dim_as_stand_in) const;
  std::string element(const std::string& place, const Element& saved, const Element& loaded) const;
  std::string elements(const std::string& place, const std::vector<Element>& saved,
                       const std::vector<Element>& loaded) const;
  std::string nstate(const std::string& place, const NState& saved, const NState& loaded,
                     const std::string& fallback) const;
  std::string record(const std::string& place, const PackedRecord& saved,
                     const PackedRecord& loaded) const;

  Profile profile_;
};

std::string Comparison::tensor(const std::string& place, const Tensor& saved, const Tensor& loaded,
                               bool zero_dim_as_stand_in) const {
  const uint64_t bytes = byte_size(saved.dtype, saved.shape).value_or(0);
  DType dtype = saved.dtype;
  if (bytes == 0 && zero_dim_as_stand_in && profile_ == Profile::kSeedExact) dtype = DType::kF32;
  if (loaded.dtype != dtype || loaded.shape != saved.shape || !loaded.byte_strides.empty()) {
    return differs(place, shown(saved), shown(loaded));
  }
  if (loaded.data.view.size() != bytes) {
    return differs(place, std::to_string(bytes) + " bytes",
                   std::to_string(loaded.data.view.size()) + " bytes");
  }
  const size_t width = element_bytes(saved.dtype);
  for (uint64_t n = 0; n < bytes / width; ++n) {
    if (std::memcmp(element_at(saved, n), element_at(loaded, n), width) != 0) {
      return place + ": element number " + std::to_string(n) + " has other bytes";
    }
  }
  return "";
}

std::string Comparison::element(const std::string& place, const Element& saved,
                                const Element& loaded) const {
  if (saved.v.index() != loaded.v.index()) {
    return differs(place, "kind " + std::to_string(saved.v.index()),
                   "kind " + std::to_string(loaded.v.index()));
  }
  if (const auto* t = std::get_if<Tensor>(&saved.v)) {
    return tensor(place, *t, std::get<Tensor>(loaded.v), true);
  }
  if (const auto* tuple = std::get_if<ElementTuple>(&saved.v)) {
    return elements(place, tuple->elements, std::get<ElementTuple>(loaded.v).elements);
  }
  if (const auto* state = std::get_if<NState>(&saved.v)) {
    return nstate(place, *state, std::get<NState>(loaded.v), "");
  }
  return "";
}

std::string Comparison::elements(const std::string& place, const std::vector<Element>& saved,
                                 const std::vector<Element>& loaded) const {
  if (saved.size() != loaded.size()) {
    return differs(place, std::to_string(saved.size()) + " elements",
                   std::to_string(loaded.size()) + " elements");
  }
  for (size_t i = 0; i < saved.size(); ++i) {
    auto found = element(place + "." + std::to_string(i), saved[i], loaded[i]);
    if (!found.empty()) return found;
  }
  return "";
}

std::string Comparison::nstate(const std::string& place, const NState& saved, const NState& loaded,
                               const std::string& fallback) const {
  std::string name = saved.class_name;
  if (name.empty() && !is_pair(saved)) name = fallback;
  if (loaded.class_name != name) {
    return differs(place, "class \"" + name + "\"", "class \"" + loaded.class_name + "\"");
  }
  return elements(place, saved.elements, loaded.elements);
}

std::string Comparison::record(const std::string& place, const PackedRecord& saved,
                               const PackedRecord& loaded) const {
  if (saved.type != loaded.type || saved.fields.size() != loaded.fields.size()) {
    return differs(place, saved.type, loaded.type);
  }
  for (size_t i = 0; i < saved.fields.size(); ++i) {
    const std::string at = place + "." + saved.fields[i].first;
    if (saved.fields[i].first != loaded.fields[i].first) {
      return differs(at, saved.fields[i].first, loaded.fields[i].first);
    }
    auto found = tensor(at, saved.fields[i].second, loaded.fields[i].second, false);
    if (!found.empty()) return found;
  }
  return "";
}

std::string Comparison::layer(const std::string& place, const LayerState& saved,
                              const LayerState& loaded, const std::string& type) const {
  if (saved.index() != loaded.index()) {
    return differs(place, "kind " + std::to_string(saved.index()),
                   "kind " + std::to_string(loaded.index()));
  }
  if (const auto* state = std::get_if<NState>(&saved)) {
    return nstate(place, *state, std::get<NState>(loaded), type);
  }
  if (const auto* packed = std::get_if<TurboQuantState>(&saved)) {
    const auto& other = std::get<TurboQuantState>(loaded);
    auto found = record(place + ".key", packed->key, other.key);
    return found.empty() ? record(place + ".value", packed->value, other.value) : found;
  }
  const auto& subs = std::get<CacheList>(saved).subs;
  const auto& other = std::get<CacheList>(loaded).subs;
  if (subs.size() != other.size()) {
    return differs(place, std::to_string(subs.size()) + " subs", std::to_string(other.size()));
  }
  for (size_t j = 0; j < subs.size(); ++j) {
    auto found = nstate(place + ".sub" + std::to_string(j), subs[j], other[j], "");
    if (!found.empty()) return found;
  }
  return "";
}

std::string compare_meta(const BlockInput& saved, const std::vector<std::string>& types,
                         const BlockInfo& info, Profile profile) {
  const bool given = saved.meta_states && !saved.meta_states->empty();
  if (given != info.meta_states.has_value()) return "meta states: on one side only";
  if (!given) return "";
  auto expected = *saved.meta_states;
  if (!types.empty()) {
    expected = clamp_rotating(saved.layers, types, std::move(expected), profile);
  }
  if (expected.size() != info.meta_states->size()) return "meta states: another number";
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!equal(MetaValue{expected[i]}, MetaValue{(*info.meta_states)[i]})) {
      return "meta state of layer " + std::to_string(i) + " differs";
    }
  }
  return "";
}

std::string compare_info(const BlockInput& saved, const std::vector<std::string>& types,
                         const BlockInfo& info, Profile profile) {
  if (info.num_layers != saved.layers.size()) return "num_layers differs";
  if (info.token_count != saved.token_count) return "token_count differs";
  if (!saved.model_name.empty() && info.model_name != saved.model_name) {
    return differs("model", saved.model_name, info.model_name);
  }
  if (info.layer_types.value_or(std::vector<std::string>()) != types ||
      info.layer_types.has_value() == types.empty()) {
    return "layer types differ";
  }
  const auto parent = profile == Profile::kExtended ? saved.parent : std::nullopt;
  if (!(info.parent == parent)) return "parent differs";
  return compare_meta(saved, types, info, profile);
}

}  // namespace

bool equal(const MetaValue& a, const MetaValue& b) {
  if (a.v.index() != b.v.index()) return false;
  if (const auto* real = std::get_if<double>(&a.v)) {
    return std::memcmp(real, &std::get<double>(b.v), sizeof *real) == 0;
  }
  const auto* list = std::get_if<std::vector<MetaValue>>(&a.v);
  if (list == nullptr) {
    if (const auto* text = std::get_if<std::string>(&a.v))
      return *text == std::get<std::string>(b.v);
    if (const auto* number = std::get_if<int64_t>(&a.v)) return *number == std::get<int64_t>(b.v);
    if (const auto* flag = std::get_if<bool>(&a.v)) return *flag == std::get<bool>(b.v);
    return true;
  }
  const auto& other = std::get<std::vector<MetaValue>>(b.v);
  if (list->size() != other.size()) return false;
  for (size_t i = 0; i < list->size(); ++i) {
    if (!equal((*list)[i], other[i])) return false;
  }
  return true;
}

std::string difference(const BlockInput& saved, const LoadedBlock& loaded, Profile profile) {
  const auto types = storage_types(saved.layer_types.value_or(std::vector<std::string>()));
  if (auto found = compare_info(saved, types, loaded.info, profile); !found.empty()) return found;
  if (loaded.layers.size() != saved.layers.size()) return "another number of layers";
  const Comparison comparison(profile);
  for (size_t i = 0; i < saved.layers.size(); ++i) {
    const std::string type = i < types.size() ? types[i] : "";
    auto found =
        comparison.layer("layer " + std::to_string(i), saved.layers[i], loaded.layers[i], type);
    if (!found.empty()) return found;
  }
  return "";
}

}  // namespace kvkeep::testing
