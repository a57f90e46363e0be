#include "testing/prompts.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "kvkeep/layer_cut.h"

namespace kvkeep::testing {
namespace {

constexpr uint64_t kHeads = 2;
constexpr uint64_t kWidth = 4;

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// What each token's row depends on.
std::vector<uint64_t> chain_of(std::span<const uint32_t> tokens) {
  std::vector<uint64_t> chain;
  uint64_t last = 1;
  for (const uint32_t token : tokens) chain.push_back(last = mix(last, token));
  return chain;
}

// [1, heads, end - begin, width]: rows begin to end of layer `layer`, keys (0) or values (1).
Tensor rows(const std::vector<uint64_t>& chain, uint64_t begin, uint64_t end, uint64_t layer,
            uint64_t part) {
  std::vector<std::byte> bytes(kHeads * (end - begin) * kWidth * 2);
  std::byte* to = bytes.data();
  for (uint64_t head = 0; head < kHeads; ++head) {
    for (uint64_t row = begin; row < end; ++row) {
      for (uint64_t i = 0; i < kWidth; ++i, to += 2) {
        store_le(to,
                 static_cast<uint16_t>(mix(chain[row], (layer * 2 + part) * 64 + head * 8 + i)));
      }
    }
  }
  return *tensor_from_bytes(bytes, DType::kF16, {1, kHeads, end - begin, kWidth});
}

LayerState pair_of(const std::vector<uint64_t>& chain, uint64_t begin, uint64_t end,
                   uint64_t layer) {
  return make_pair_state(rows(chain, begin, end, layer, 0), rows(chain, begin, end, layer, 1));
}

LayerState window_at(const std::vector<uint64_t>& chain, uint64_t count, uint64_t layer,
                     const StateShape& shape) {
  return pair_of(chain, count - std::min(count, shape.window), count, layer);
}

bool same_bytes(const LayerState& a, const LayerState& b) {
  const auto& left = std::get<NState>(a).elements;
  const auto& right = std::get<NState>(b).elements;
  return std::equal(
      left.begin(), left.end(), right.begin(), right.end(), [](const Element& x, const Element& y) {
        const auto& p = std::get<Tensor>(x.v);
        const auto& q = std::get<Tensor>(y.v);
        return p.shape == q.shape && std::equal(p.data.view.begin(), p.data.view.end(),
                                                q.data.view.begin(), q.data.view.end());
      });
}

LayerState joined_layer(const LoadedPrefix& prefix, size_t layer) {
  const auto joined = join_layer(prefix.blocks, layer, prefix.tokens);
  if (!joined.ok()) return NState{};
  NState state;
  for (const JoinedTensor& tensor : *joined) {
    std::vector<std::byte> bytes(tensor.bytes);
    copy_joined(tensor, bytes);
    state.elements.push_back({*tensor_from_bytes(bytes, tensor.dtype, tensor.shape)});
  }
  return state;
}

}  // namespace

Tokens some_tokens(uint64_t seed, size_t count) {
  Tokens tokens;
  for (size_t i = 0; i < count; ++i) tokens.push_back(static_cast<uint32_t>(mix(seed, i) % 50'000));
  return tokens;
}

Tokens operator+(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

PromptState state_after(std::span<const uint32_t> tokens, uint64_t first_token,
                        const StateShape& shape) {
  const std::vector<uint64_t> chain = chain_of(tokens);
  PromptState state;
  state.first_token = first_token;
  for (size_t i = 0; i < shape.kv_layers; ++i) {
    state.layers.push_back(pair_of(chain, first_token, tokens.size(), i));
    state.layer_types.push_back("KVCache");
  }
  for (size_t i = 0; i < shape.window_layers; ++i) {
    state.layers.push_back(window_at(chain, tokens.size(), shape.kv_layers + i, shape));
    state.layer_types.push_back("RotatingKVCache");
  }
  return state;
}

Snapshot snapshot_after(std::span<const uint32_t> tokens, uint64_t count, const StateShape& shape) {
  const std::vector<uint64_t> chain = chain_of(tokens);
  Snapshot snapshot{count, {}, {}};
  for (size_t i = 0; i < shape.kv_layers; ++i) snapshot.layers.push_back(placeholder_layer());
  for (size_t i = 0; i < shape.window_layers; ++i) {
    snapshot.layers.push_back(window_at(chain, count, shape.kv_layers + i, shape));
  }
  return snapshot;
}

std::string difference(const LoadedPrefix& prefix, std::span<const uint32_t> tokens,
                       const StateShape& shape) {
  if (prefix.blocks.empty()) return prefix.tokens == 0 ? "" : "tokens without blocks";
  if (prefix.tokens > tokens.size()) return "more tokens than the prompt has";
  const std::vector<uint64_t> chain = chain_of(tokens);
  for (size_t i = 0; i < shape.kv_layers; ++i) {
    if (!same_bytes(joined_layer(prefix, i), pair_of(chain, 0, prefix.tokens, i)))
      return "layer " + std::to_string(i);
  }
  for (size_t i = shape.kv_layers; i < shape.kv_layers + shape.window_layers; ++i) {
    if (!same_bytes(prefix.blocks.back().layers[i], window_at(chain, prefix.tokens, i, shape)))
      return "layer " + std::to_string(i) + ", a window";
  }
  return "";
}

}  // namespace kvkeep::testing
