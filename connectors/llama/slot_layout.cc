#include "connectors/llama/slot_layout.h"

#include <algorithm>
#include <tuple>

#include "connectors/llama/slot_form.h"

namespace kvkeep::llama {
namespace {

constexpr uint32_t kKnownVersions[] = {2, 4};

// A type of ggml that people have for K or V. The others go by their number.
struct CacheType {
  int32_t number;
  std::string_view name;
  std::optional<DType> dtype;  // Of types whose elements stand alone.
};
constexpr CacheType kCacheTypes[] = {
    {0, "f32", DType::kF32}, {1, "f16", DType::kF16}, {2, "q4_0", {}},
    {3, "q4_1", {}},         {6, "q5_0", {}},         {7, "q5_1", {}},
    {8, "q8_0", {}},         {20, "iq4_nl", {}},      {30, "bf16", DType::kBF16},
};

const CacheType* find_type(int32_t number) {
  const auto* found = std::find_if(std::begin(kCacheTypes), std::end(kCacheTypes),
                                   [&](const CacheType& type) { return type.number == number; });
  return found == std::end(kCacheTypes) ? nullptr : found;
}

std::string type_text(int32_t number) {
  const CacheType* type = find_type(number);
  return type != nullptr ? std::string(type->name) : "type-" + std::to_string(number);
}

std::optional<DType> element_of(int32_t number) {
  const CacheType* type = find_type(number);
  return type != nullptr ? type->dtype : std::nullopt;
}

uint64_t v_bytes(const LayerRows& rows, bool transposed) {
  return transposed ? uint64_t{rows.v_element_bytes} * rows.v_rows : rows.v_row_bytes;
}

Status wrong_layer(size_t layer, const std::string& what) {
  return Status(Code::kInvalidArgument, "layer " + std::to_string(layer) + ": " + what);
}

// A row of whole elements, neither empty nor too long.
Status check_row(size_t layer, const std::string& name, int32_t type, uint64_t bytes) {
  if (bytes == 0 || bytes > kRowBytesMax) {
    return wrong_layer(layer, name + " of " + std::to_string(bytes) + " bytes per token (1 to " +
                                  std::to_string(kRowBytesMax) + " can be)");
  }
  const std::optional<DType> element = element_of(type);
  if (element && bytes % element_bytes(*element) != 0) {
    return wrong_layer(layer, name + " of " + std::to_string(bytes) +
                                  " bytes per token is no number of " + type_text(type));
  }
  return Status();
}

Status check_transposed(size_t layer, const LayerRows& rows) {
  const std::optional<DType> element = element_of(rows.v_type);
  if (element && rows.v_element_bytes != element_bytes(*element)) {
    return wrong_layer(layer, "V elements of " + std::to_string(rows.v_element_bytes) +
                                  " bytes are not " + type_text(rows.v_type));
  }
  return Status();
}

Status check_layer(size_t layer, const LayerRows& rows, bool transposed) {
  KVKEEP_TRY(check_row(layer, "K", rows.k_type, rows.k_row_bytes));
  const bool other_form =
      transposed ? rows.v_row_bytes != 0 : rows.v_element_bytes != 0 || rows.v_rows != 0;
  if (other_form) return wrong_layer(layer, "V is described as transposed and as not transposed");
  KVKEEP_TRY(check_row(layer, "V", rows.v_type, v_bytes(rows, transposed)));
  return transposed ? check_transposed(layer, rows) : Status();
}

// "f16:384 x30", or with a comma between runs of layers that differ.
template <typename TextOf>
std::string runs(const std::vector<LayerRows>& layers, TextOf text_of) {
  std::string all;
  for (size_t begin = 0; begin < layers.size();) {
    const std::string text = text_of(layers[begin]);
    size_t end = begin + 1;
    while (end < layers.size() && text_of(layers[end]) == text) ++end;
    if (!all.empty()) all += ", ";
    all += text + " x" + std::to_string(end - begin);
    begin = end;
  }
  return all;
}

std::string k_text(const LayerRows& rows) {
  return type_text(rows.k_type) + ":" + std::to_string(rows.k_row_bytes);
}

std::string v_text(const LayerRows& rows, bool transposed) {
  const std::string size =
      transposed ? std::to_string(rows.v_element_bytes) + "*" + std::to_string(rows.v_rows)
                 : std::to_string(rows.v_row_bytes);
  return type_text(rows.v_type) + ":" + size;
}

TensorForm row_form(int32_t type, uint64_t row_bytes, uint64_t tokens) {
  const DType dtype = element_of(type).value_or(DType::kU8);
  return {dtype, {1, 1, tokens, row_bytes / element_bytes(dtype)}};
}

TensorForm transposed_form(const LayerRows& rows, uint64_t tokens) {
  const DType dtype = element_of(rows.v_type).value_or(DType::kU8);
  return {dtype, {1, rows.v_rows, tokens, rows.v_element_bytes / element_bytes(dtype)}};
}

}  // namespace

bool operator==(const SlotLayout& a, const SlotLayout& b) {
  const auto compared = [](const SlotLayout& layout) {
    return std::tie(layout.version, layout.streams, layout.v_transposed, layout.rotation,
                    layout.layers);
  };
  return compared(a) == compared(b);
}

bool is_known_version(uint32_t version) {
  return std::find(std::begin(kKnownVersions), std::end(kKnownVersions), version) !=
         std::end(kKnownVersions);
}

Status check_layout(const SlotLayout& layout) {
  if (!is_known_version(layout.version)) {
    return Status(Code::kUnimplemented, "slot files of version " + std::to_string(layout.version) +
                                            " are not known (2 and 4 are)");
  }
  if (layout.streams == 0 || layout.streams > kStreamsMax) {
    return Status(Code::kInvalidArgument,
                  std::to_string(layout.streams) + " streams (1 to 1024 can be)");
  }
  if (layout.layers.size() > kLayersMax) {
    return Status(Code::kInvalidArgument,
                  std::to_string(layout.layers.size()) + " layers (at most 1024 can be)");
  }
  const bool rotates = layout.version >= kFirstVersionWithRotation && !layout.layers.empty();
  if (layout.rotation.has_value() != rotates) {
    return Status(Code::kInvalidArgument, "a rotation is told by version 4, and by no other");
  }
  for (size_t i = 0; i < layout.layers.size(); ++i) {
    KVKEEP_TRY(check_layer(i, layout.layers[i], layout.v_transposed));
  }
  return Status();
}

std::map<std::string, std::string> layout_fields(const SlotLayout& layout) {
  std::map<std::string, std::string> fields;
  fields["slot_file"] = std::to_string(layout.version);
  fields["v_trans"] = layout.v_transposed ? "1" : "0";
  if (layout.rotation) {
    fields["n_rot"] =
        std::to_string((*layout.rotation)[0]) + ", " + std::to_string((*layout.rotation)[1]);
  }
  fields["k_rows"] = runs(layout.layers, k_text);
  fields["v_rows"] =
      runs(layout.layers, [&](const LayerRows& rows) { return v_text(rows, layout.v_transposed); });
  return fields;
}

uint64_t bytes_per_token(const SlotLayout& layout) {
  uint64_t bytes = 0;
  for (const LayerRows& rows : layout.layers) {
    bytes += rows.k_row_bytes + v_bytes(rows, layout.v_transposed);
  }
  return bytes;
}

uint64_t slot_file_bytes(const SlotLayout& layout, uint64_t tokens) {
  const uint64_t bytes = kFileHeadBytes + (tokens + kPackedExtraWords) * sizeof(uint32_t) +
                         kCountBytes + layout.streams * kCountBytes;
  if (tokens == 0) return bytes;
  const uint64_t v_head = layout.v_transposed ? kTransposedHeadBytes : kRowsHeadBytes;
  const uint64_t heads = kStateHeadBytes + (layout.rotation ? kRotationBytes : 0) +
                         layout.layers.size() * (kRowsHeadBytes + v_head);
  return bytes + heads + tokens * (kCellBytes + bytes_per_token(layout));
}

std::array<TensorForm, 2> pair_forms(const SlotLayout& layout, size_t layer, uint64_t tokens) {
  const LayerRows& rows = layout.layers[layer];
  return {row_form(rows.k_type, rows.k_row_bytes, tokens),
          layout.v_transposed ? transposed_form(rows, tokens)
                              : row_form(rows.v_type, rows.v_row_bytes, tokens)};
}

}  // namespace kvkeep::llama
