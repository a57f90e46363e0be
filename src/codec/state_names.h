// Names and limits that the writer and the reader of layer states share (docs/contract.md B.8,
// B.18).
//
// Threads: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kvkeep/tensor.h"

namespace kvkeep {

// Composite elements may nest this deep below a layer or sub-state.
inline constexpr size_t kNestingMax = 32;
// Elements of a state, sub-states of a cache list.
inline constexpr uint64_t kCountMax = 1'000'000;
// Axes of a tensor without elements.
inline constexpr size_t kZeroDimAxesMax = 16;
inline constexpr std::string_view kCacheListType = "CacheList";

std::string layer_prefix(size_t layer);
std::string sub_prefix(std::string_view layer, size_t sub);
std::string element_name(std::string_view prefix, size_t element);

// What a person reads: "layer 3, sub-state 1, element 0.2" for "layer_3_sub_1_state_0_state_2".
std::string place_of(std::string_view name);

// "1,1,64,0", the form of a shape in a zero_dim key. The inverse gives none unless the text is that
// of a shape with at most 16 axes, one of them 0.
std::string zero_dim_text(const Shape& shape);
std::optional<Shape> parse_zero_dim(std::string_view text);

// A TurboQuant record type and its fields, in declaration order.
struct RecordType {
  std::string_view name;
  std::span<const std::string_view> fields;
  bool storable;  // No field is composite.
};
// Null for a type that is not known.
const RecordType* find_record_type(std::string_view name);

}  // namespace kvkeep
