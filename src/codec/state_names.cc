#include "codec/state_names.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace kvkeep {
namespace {

constexpr std::array<std::string_view, 2> kMse = {"norms", "indices"};
constexpr std::array<std::string_view, 4> kProd = {"norms", "mse_indices", "residual_norms",
                                                   "qjl_signs"};
constexpr std::array<std::string_view, 2> kPolar = {"radii", "level_indices"};
constexpr std::array<std::string_view, 4> kPolarProd = {"norms", "polar_state", "residual_norms",
                                                        "qjl_signs"};
constexpr std::array<std::string_view, 2> kSplit = {"low", "high"};

constexpr std::array<RecordType, 5> kRecordTypes = {{
    {"TurboQuantMSEState", kMse, true},
    {"TurboQuantProdState", kProd, true},
    {"TurboQuantPolarState", kPolar, false},
    {"TurboQuantPolarProdState", kPolarProd, false},
    {"TurboQuantSplitState", kSplit, false},
}};

// Removes `head` from the front of `text` if it is there.
bool take(std::string_view& text, std::string_view head) {
  if (text.substr(0, head.size()) != head) return false;
  text.remove_prefix(head.size());
  return true;
}

}  // namespace

std::string layer_prefix(size_t layer) { return "layer_" + std::to_string(layer); }

std::string sub_prefix(std::string_view layer, size_t sub) {
  return std::string(layer) + "_sub_" + std::to_string(sub);
}

std::string element_name(std::string_view prefix, size_t element) {
  return std::string(prefix) + "_state_" + std::to_string(element);
}

std::string place_of(std::string_view name) {
  std::string place;
  bool in_element = false;
  while (!name.empty()) {
    if (take(name, "layer_")) {
      place += "layer ";
    } else if (take(name, "_sub_")) {
      place += ", sub-state ";
    } else if (take(name, "_state_")) {
      place += in_element ? "." : ", element ";
      in_element = true;
    } else if (take(name, "_tq_k_")) {
      place += ", key field ";
    } else if (take(name, "_tq_v_")) {
      place += ", value field ";
    } else {
      place += name.front();
      name.remove_prefix(1);
    }
  }
  return place;
}

std::string zero_dim_text(const Shape& shape) {
  std::string text;
  for (const uint64_t length : shape) {
    if (!text.empty()) text += ',';
    text += std::to_string(length);
  }
  return text;
}

std::optional<Shape> parse_zero_dim(std::string_view text) {
  Shape shape;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    uint64_t length = 0;
    const auto [next, error] = std::from_chars(at, end, length);
    if (error != std::errc() || shape.size() == kZeroDimAxesMax) return std::nullopt;
    shape.push_back(length);
    if (next == end) break;
    if (*next != ',') return std::nullopt;
    at = next + 1;
  }
  if (byte_size(DType::kU8, shape) != uint64_t{0}) return std::nullopt;
  return shape;
}

const RecordType* find_record_type(std::string_view name) {
  const auto* const at = std::find_if(kRecordTypes.begin(), kRecordTypes.end(),
                                      [&](const RecordType& type) { return type.name == name; });
  return at == kRecordTypes.end() ? nullptr : at;
}

}  // namespace kvkeep
