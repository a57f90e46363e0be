// What all slot files of one llama-server have in common: version, streams, and the rows of each
// layer. From it follow the size of a file, the tensors of a layer, and what must be equal for
// blocks to be interchangeable.
//
// The file itself: docs/llama-slots.md. Sizes are in bytes.
//
// Threads: plain values and pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kvkeep/status.h"
#include "kvkeep/tensor.h"

namespace kvkeep::llama {

inline constexpr uint32_t kStreamsMax = 1024;
inline constexpr uint32_t kLayersMax = 1024;
inline constexpr uint64_t kRowBytesMax = uint64_t{1} << 20;  // Of one token's K or V in one layer.
inline constexpr uint64_t kTokensMax = (uint64_t{1} << 31) - 1;

// The state of one token in one layer. Types are the numbers of ggml: 0 f32, 1 f16, 8 q8_0, …
struct LayerRows {
  int32_t k_type = 0;
  uint64_t k_row_bytes = 0;
  int32_t v_type = 0;
  uint64_t v_row_bytes = 0;      // 0 if V is transposed.
  uint32_t v_element_bytes = 0;  // 0 unless V is transposed, as v_rows.
  uint32_t v_rows = 0;           // Elements of V for each token.

  friend bool operator==(const LayerRows&, const LayerRows&) = default;
};

struct SlotLayout {
  uint32_t version = 0;
  uint32_t streams = 1;
  // That held the tokens of the file it was learned from.
  uint32_t stream = 0;
  // V lies element by element instead of token by token: what a server does without flash
  // attention.
  bool v_transposed = false;
  // Widths of the rotation of K and of V. Since version 4.
  std::optional<std::array<uint32_t, 2>> rotation{};
  std::vector<LayerRows> layers{};  // None in a file without tokens, which says nothing of them.
};

// Whether a file of one can be written for the other: all but `stream`.
bool operator==(const SlotLayout& a, const SlotLayout& b);
inline bool operator!=(const SlotLayout& a, const SlotLayout& b) { return !(a == b); }

// True for 2 and 4.
bool is_known_version(uint32_t version);

// kUnimplemented for a version that is not known; kInvalidArgument naming the member, and the
// layer, that is out of range or contradicts another. OK without layers.
Status check_layout(const SlotLayout& layout);

// What is not portable between servers, as fields of a Namespace: version of the file, layout of V,
// rotation, types and rows of K and V. The streams are not among them.
std::map<std::string, std::string> layout_fields(const SlotLayout& layout);

// Of the rows alone. REQUIRES here and below: check_layout(layout).ok(), tokens <= kTokensMax.
uint64_t bytes_per_token(const SlotLayout& layout);

// Of a whole file, to the byte.
uint64_t slot_file_bytes(const SlotLayout& layout, uint64_t tokens);

struct TensorForm {
  DType dtype = DType::kU8;
  Shape shape{};  // Tokens are on axis 2.
};
// Keys and values of `tokens` tokens of layer `layer` as tensors, in the order of the file's bytes:
// [1, 1, tokens, width], and [1, width, tokens, 1] for transposed V; of elements if the type is
// f32, f16 or bf16, else of bytes. REQUIRES: layer < layout.layers.size().
std::array<TensorForm, 2> pair_forms(const SlotLayout& layout, size_t layer, uint64_t tokens);

}  // namespace kvkeep::llama
