#include "capi/c_tensors.h"

#include <array>

#include "capi/arguments.h"

namespace kvkeep::capi {
namespace {

constexpr size_t kFirstSize =
    offsetof(kvkeep_block_input, write_through) + sizeof(kvkeep_block_input::write_through);
static_assert(kFirstSize == sizeof(kvkeep_block_input), "padding at the end hides new fields");

constexpr uint32_t kMaxAxes = 32;

constexpr std::array kDtypes = {KVKEEP_F16,     KVKEEP_F32,     KVKEEP_BF16,   KVKEEP_I8,
                                KVKEEP_I16,     KVKEEP_I32,     KVKEEP_I64,    KVKEEP_U8,
                                KVKEEP_U16,     KVKEEP_U32,     KVKEEP_U64,    KVKEEP_BOOL,
                                KVKEEP_F8_E4M3, KVKEEP_F8_E5M2, KVKEEP_F8_E8M0};
constexpr std::array kOurs = {
#define KVKEEP_X(id, name, bytes) DType::id,
    KVKEEP_DTYPES(KVKEEP_X)
#undef KVKEEP_X
};
static_assert([] {
  for (size_t i = 0; i < kOurs.size(); ++i) {
    if (static_cast<size_t>(kOurs[i]) != i || static_cast<size_t>(kDtypes[i]) != i) return false;
  }
  return kOurs.size() == kDtypes.size();
}());

std::string in(const std::string& where, const char* field) { return where + "." + field; }

bool is_dtype(int32_t dtype) { return dtype >= 0 && static_cast<size_t>(dtype) < kDtypes.size(); }

Result<TensorView> view_of(const kvkeep_tensor& given, const std::string& where) {
  if (!is_dtype(given.dtype)) {
    return invalid(in(where, "dtype") + ": " + std::to_string(given.dtype) + " is no kvkeep_dtype");
  }
  if (given.num_axes > kMaxAxes) return invalid(in(where, "num_axes") + ": more than 32");
  KVKEEP_TRY(array_given(given.shape, given.num_axes, in(where, "shape")));
  TensorView view;
  view.dtype = static_cast<DType>(given.dtype);
  view.shape.assign(given.shape, given.shape + given.num_axes);
  if (given.byte_strides != nullptr) {
    view.byte_strides.assign(given.byte_strides, given.byte_strides + given.num_axes);
  }
  view.base = static_cast<const std::byte*>(given.data);
  return view;
}

Result<Element> to_element(const kvkeep_tensor& given, const std::string& where) {
  if (given.dtype == KVKEEP_NO_TENSOR) return Element{Null{}};
  KVKEEP_TRY_ASSIGN(const TensorView view, view_of(given, where));
  auto tensor = as_tensor(view);
  if (!tensor.ok()) return invalid(where + ": " + tensor.status().message());
  return Element{*std::move(tensor)};
}

Result<NState> to_state(const kvkeep_layer& given, const std::string& where) {
  KVKEEP_TRY(array_given(given.tensors, given.num_tensors, in(where, "tensors")));
  NState state;
  if (given.class_name != nullptr) state.class_name = given.class_name;
  for (size_t i = 0; i < given.num_tensors; ++i) {
    KVKEEP_TRY_ASSIGN(Element element,
                      to_element(given.tensors[i], where + ".tensors[" + std::to_string(i) + "]"));
    state.elements.push_back(std::move(element));
  }
  return state;
}

kvkeep_tensor view_of(const Element& element) {
  kvkeep_tensor view{};
  view.dtype = KVKEEP_NO_TENSOR;
  if (const auto* tensor = std::get_if<Tensor>(&element.v)) {
    view.data = tensor->data.view.data();
    view.shape = tensor->shape.data();
    view.num_axes = static_cast<uint32_t>(tensor->shape.size());
    view.dtype = static_cast<int32_t>(tensor->dtype);
  }
  return view;
}

kvkeep_block::Layer show(const LayerState& state) {
  kvkeep_block::Layer layer;
  const auto* nstate = std::get_if<NState>(&state);
  if (nstate == nullptr) return layer;
  for (const Element& element : nstate->elements) {
    const bool nested =
        !std::holds_alternative<Tensor>(element.v) && !std::holds_alternative<Null>(element.v);
    if (nested) return {};
    layer.tensors.push_back(view_of(element));
  }
  layer.flat = true;
  return layer;
}

}  // namespace

Result<BlockInput> to_block_input(const kvkeep_block_input* given) {
  KVKEEP_TRY_ASSIGN(const kvkeep_block_input read, read_struct(given, kFirstSize, "block"));
  KVKEEP_TRY(array_given(read.layers, read.num_layers, "block.layers"));
  BlockInput input;
  for (size_t i = 0; i < read.num_layers; ++i) {
    KVKEEP_TRY_ASSIGN(NState state,
                      to_state(read.layers[i], "block.layers[" + std::to_string(i) + "]"));
    input.layers.emplace_back(std::move(state));
  }
  if (read.layer_types != nullptr) {
    KVKEEP_TRY_ASSIGN(input.layer_types,
                      to_texts(read.layer_types, read.num_layers, "block.layer_types"));
  }
  if (read.model_name != nullptr) input.model_name = read.model_name;
  if (read.parent.size > 0) {
    KVKEEP_TRY_ASSIGN(input.parent, to_hash(read.parent, "block.parent"));
  }
  input.token_count = read.token_count;
  input.write_back = read.write_through == 0;
  return input;
}

std::unique_ptr<kvkeep_block> make_block(LoadedBlock loaded) {
  auto block = std::make_unique<kvkeep_block>();
  block->loaded = std::move(loaded);
  for (const LayerState& state : block->loaded.layers) block->layers.push_back(show(state));
  return block;
}

}  // namespace kvkeep::capi

uint64_t kvkeep_tensor_bytes(const kvkeep_tensor* tensor) {
  if (tensor == nullptr || !kvkeep::capi::is_dtype(tensor->dtype)) return 0;
  uint64_t bytes = kvkeep::element_bytes(static_cast<kvkeep::DType>(tensor->dtype));
  for (uint32_t axis = 0; axis < tensor->num_axes; ++axis) {
    if (__builtin_mul_overflow(bytes, tensor->shape[axis], &bytes)) return 0;
  }
  return bytes;
}
