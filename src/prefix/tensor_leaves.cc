#include "prefix/tensor_leaves.h"

#include <algorithm>

namespace kvkeep {
namespace {

std::optional<size_t> token_axis(size_t rank) {
  if (rank == 4) return 2;
  if (rank == 3) return 1;
  return std::nullopt;
}

bool same_but_for(std::optional<size_t> axis, const Tensor& a, const Tensor& b) {
  if (a.dtype != b.dtype || a.shape.size() != b.shape.size()) return false;
  for (size_t i = 0; i < a.shape.size(); ++i) {
    if (i != axis && a.shape[i] != b.shape[i]) return false;
  }
  return true;
}

class Collector {
 public:
  void add(const std::vector<Element>& elements) {
    for (size_t i = 0; i < elements.size(); ++i) {
      path_.push_back(static_cast<uint32_t>(i));
      add(elements[i]);
      path_.pop_back();
    }
  }

  void add(uint32_t sub, const NState& state) {
    path_.push_back(sub);
    add(state.elements);
    path_.pop_back();
  }

  void add(uint32_t part, const PackedRecord& record) {
    for (size_t i = 0; i < record.fields.size(); ++i) {
      const Tensor& tensor = record.fields[i].second;
      std::optional<size_t> axis;
      if (tensor.shape.size() > 2) axis = 2;
      leaves.push_back({{part, static_cast<uint32_t>(i)}, &tensor, axis});
    }
  }

  std::vector<TensorLeaf> leaves;

 private:
  void add(const Element& element) {
    if (const auto* tensor = std::get_if<Tensor>(&element.v)) {
      leaves.push_back({path_, tensor, token_axis(tensor->shape.size())});
    } else if (const auto* tuple = std::get_if<ElementTuple>(&element.v)) {
      add(tuple->elements);
    } else if (const auto* state = std::get_if<NState>(&element.v)) {
      add(state->elements);
    }
  }

  std::vector<uint32_t> path_;
};

}  // namespace

std::vector<TensorLeaf> tensor_leaves(const LayerState& layer) {
  Collector collector;
  if (const auto* state = std::get_if<NState>(&layer)) {
    collector.add(state->elements);
  } else if (const auto* list = std::get_if<CacheList>(&layer)) {
    for (size_t i = 0; i < list->subs.size(); ++i) {
      collector.add(static_cast<uint32_t>(i), list->subs[i]);
    }
  } else {
    const auto& turbo = std::get<TurboQuantState>(layer);
    collector.add(0, turbo.key);
    collector.add(1, turbo.value);
  }
  return std::move(collector.leaves);
}

bool same_form(const std::vector<TensorLeaf>& a, const std::vector<TensorLeaf>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const TensorLeaf& l, const TensorLeaf& r) {
        return l.path == r.path && l.axis == r.axis && same_but_for(l.axis, *l.tensor, *r.tensor);
      });
}

TensorView view_of(const Tensor& tensor) {
  TensorView view{tensor.dtype, tensor.shape, tensor.byte_strides, tensor.data.view.data(),
                  tensor.data.owner};
  if (view.byte_strides.empty()) {
    view.byte_strides.resize(tensor.shape.size());
    auto stride = static_cast<int64_t>(element_bytes(tensor.dtype));
    for (size_t i = tensor.shape.size(); i-- > 0;) {
      view.byte_strides[i] = stride;
      stride *= static_cast<int64_t>(tensor.shape[i]);
    }
    return view;
  }
  // `data` begins at the lowest address.
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    const int64_t stride = tensor.byte_strides[i];
    if (stride < 0) view.base -= stride * (static_cast<int64_t>(tensor.shape[i]) - 1);
  }
  return view;
}

}  // namespace kvkeep
