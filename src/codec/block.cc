#include "kvkeep/block.h"

#include <utility>

namespace kvkeep {
namespace {

bool is_plain(const Element& element) {
  return std::holds_alternative<Null>(element.v) || std::holds_alternative<Tensor>(element.v);
}

}  // namespace

bool is_pair(const NState& state) {
  return state.elements.size() == 2 && is_plain(state.elements[0]) && is_plain(state.elements[1]);
}

NState make_pair_state(Tensor keys, Tensor values) {
  NState state;
  state.elements.reserve(2);
  state.elements.push_back(Element{std::move(keys)});
  state.elements.push_back(Element{std::move(values)});
  return state;
}

}  // namespace kvkeep
