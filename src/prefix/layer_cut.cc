#include "kvkeep/layer_cut.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "prefix/tensor_leaves.h"

namespace kvkeep {
namespace {

constexpr std::string_view kCuttableTypes[] = {
    "KVCache",          "BatchKVCache",      "ConcatenateKVCache",     "QuantizedKVCache",
    "MiniMaxM3KVCache", "TurboQuantKVCache", "BatchTurboQuantKVCache",
};
constexpr std::string_view kCacheList = "CacheList";

bool is_cuttable_type(std::string_view type) {
  return std::find(std::begin(kCuttableTypes), std::end(kCuttableTypes), type) !=
         std::end(kCuttableTypes);
}

// A member that names its class is judged by it.
bool can_be_cut(const LayerState& layer, const CacheList& list) {
  const auto leaves = tensor_leaves(layer);
  return std::all_of(leaves.begin(), leaves.end(),
                     [](const TensorLeaf& leaf) { return leaf.tensor->shape.size() == 4; }) &&
         std::all_of(list.subs.begin(), list.subs.end(), [](const NState& sub) {
           return sub.class_name.empty() || is_cuttable_type(sub.class_name);
         });
}

Result<Tensor> cut_tensor(const Tensor& whole, size_t axis, uint64_t begin, uint64_t end) {
  TensorView view = view_of(whole);
  view.base += view.byte_strides[axis] * static_cast<int64_t>(begin);
  view.shape[axis] = end - begin;
  return as_tensor(view);
}

Status disagree(size_t layer) {
  return Status(Code::kFailedPrecondition, "layer " + std::to_string(layer) +
                                               ": the blocks of the prefix do not fit together");
}

std::vector<JoinedTensor> joined_like(const std::vector<TensorLeaf>& leaves, uint64_t tokens) {
  std::vector<JoinedTensor> joined;
  for (const TensorLeaf& leaf : leaves) {
    joined.push_back(
        {leaf.path, leaf.tensor->dtype, leaf.tensor->shape, 0, leaf.axis.value_or(0), {}});
    if (leaf.axis) joined.back().shape[*leaf.axis] = tokens;
    joined.back().bytes = byte_size(leaf.tensor->dtype, joined.back().shape).value_or(0);
  }
  return joined;
}

// How the tokens of a tensor lie in memory.
struct Rows {
  uint64_t outer = 1;  // Runs of tokens: places of the axes before.
  uint64_t bytes = 1;  // Of one token in a run.

  Rows(const Tensor& tensor, size_t axis) : bytes(element_bytes(tensor.dtype)) {
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      if (i < axis) outer *= tensor.shape[i];
      if (i > axis) bytes *= tensor.shape[i];
    }
  }
};

}  // namespace

bool is_cuttable(std::string_view layer_type, const LayerState& layer) {
  if (std::holds_alternative<TurboQuantState>(layer)) return true;
  if (const auto* list = std::get_if<CacheList>(&layer)) return can_be_cut(layer, *list);
  return layer_type == kCacheList || is_cuttable_type(layer_type);
}

std::optional<uint64_t> tokens_in(const LayerState& layer) {
  std::optional<uint64_t> tokens;
  for (const TensorLeaf& leaf : tensor_leaves(layer)) {
    if (!leaf.axis) continue;
    const uint64_t own = leaf.tensor->shape[*leaf.axis];
    if (tokens && *tokens != own) return std::nullopt;
    tokens = own;
  }
  return tokens;
}

Result<LayerState> cut_layer(const LayerState& layer, uint64_t begin, uint64_t end) {
  if (begin > end || end > tokens_in(layer).value_or(0)) {
    return Status(Code::kInvalidArgument, "tokens " + std::to_string(begin) + " to " +
                                              std::to_string(end) + " are not all in the layer");
  }
  LayerState cut = layer;
  for (const TensorLeaf& leaf : tensor_leaves(cut)) {
    if (!leaf.axis) continue;
    KVKEEP_TRY_ASSIGN(Tensor part, cut_tensor(*leaf.tensor, *leaf.axis, begin, end));
    // The leaves point into `cut`, which is ours to change.
    const_cast<Tensor&>(*leaf.tensor) = std::move(part);
  }
  return cut;
}

LayerState placeholder_layer() {
  const std::array<std::byte, sizeof(float)> zero{};
  const Tensor one = *tensor_from_bytes(zero, DType::kF32, {1});
  return make_pair_state(one, one);
}

bool is_placeholder(const LayerState& layer) {
  const auto* state = std::get_if<NState>(&layer);
  if (state == nullptr || state->elements.size() != 2) return false;
  const auto* first = std::get_if<Tensor>(&state->elements[0].v);
  return first != nullptr && first->shape == Shape{1};
}

Result<std::vector<JoinedTensor>> join_layer(std::span<const LoadedBlock> blocks, size_t layer,
                                             uint64_t tokens) {
  std::vector<JoinedTensor> joined;
  std::vector<TensorLeaf> first;
  uint64_t left = tokens;
  for (const LoadedBlock& block : blocks) {
    if (left == 0 && !joined.empty()) break;
    if (layer >= block.layers.size()) return disagree(layer);
    const std::vector<TensorLeaf> leaves = tensor_leaves(block.layers[layer]);
    if (joined.empty()) {
      first = leaves;
      joined = joined_like(leaves, tokens);
    }
    if (!same_form(first, leaves)) return disagree(layer);
    const uint64_t used = std::min(left, tokens_in(block.layers[layer]).value_or(0));
    for (size_t i = 0; i < leaves.size(); ++i) {
      if (!leaves[i].axis) joined[i].pieces.clear();
      joined[i].pieces.push_back({leaves[i].tensor, used});
    }
    left -= used;
  }
  if (left > 0) return disagree(layer);
  return joined;
}

void copy_joined(const JoinedTensor& joined, std::span<std::byte> destination) {
  if (joined.pieces.empty()) return;
  const bool whole = joined.shape == joined.pieces[0].tensor->shape && joined.pieces.size() == 1;
  if (whole) {
    const BytesView bytes = joined.pieces[0].tensor->data.view;
    std::memcpy(destination.data(), bytes.data(), bytes.size());
    return;
  }
  const Rows rows(*joined.pieces[0].tensor, joined.axis);
  std::byte* to = destination.data();
  for (uint64_t outer = 0; outer < rows.outer; ++outer) {
    for (const JoinedTensor::Piece& piece : joined.pieces) {
      const uint64_t own = piece.tensor->shape[joined.axis] * rows.bytes;
      std::memcpy(to, piece.tensor->data.view.data() + outer * own, piece.tokens * rows.bytes);
      to += piece.tokens * rows.bytes;
    }
  }
}

}  // namespace kvkeep
