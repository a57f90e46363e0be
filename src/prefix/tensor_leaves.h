// The tensors of a layer state in a fixed order, each with its place and its token axis.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kvkeep/block.h"

namespace kvkeep {

struct TensorLeaf {
  std::vector<uint32_t> path;  // As JoinedTensor::path.
  const Tensor* tensor = nullptr;
  std::optional<size_t> axis;
};

// They point into `layer`.
std::vector<TensorLeaf> tensor_leaves(const LayerState& layer);
std::vector<TensorLeaf> tensor_leaves(LayerState&& layer) = delete;

// True if both have the same tensors, but for how many tokens they hold: places, dtypes and shapes
// agree.
bool same_form(const std::vector<TensorLeaf>& a, const std::vector<TensorLeaf>& b);

// The tensor with its strides written out and the address of its first element.
TensorView view_of(const Tensor& tensor);

}  // namespace kvkeep
