// clamp_rotating(): a window buffer's write position never exceeds the rows that were saved (B.15).

#include <charconv>
#include <cmath>
#include <limits>

#include "codec/meta_state.h"

namespace kvkeep {
namespace {

constexpr int64_t kFar = std::numeric_limits<int64_t>::max();

bool is_rotating(std::string_view type) {
  return type == "RotatingKVCache" || type == "BatchRotatingKVCache" ||
         type == "BufferedRotatingKVCache";
}

// A decimal integer, blanks around it and a sign allowed; numbers too large for 64 bits saturate.
std::optional<int64_t> parse_integer(std::string_view text) {
  constexpr std::string_view blanks = " \t\n\r\f\v";
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return std::nullopt;
  text = text.substr(first, text.find_last_not_of(blanks) - first + 1);
  const bool plus = text.front() == '+';
  if (plus) text.remove_prefix(1);
  if (text.empty() || (plus && text.front() == '-')) return std::nullopt;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) return text.front() == '-' ? -kFar : kFar;
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

std::optional<int64_t> to_integer(const MetaValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value.v)) return *number;
  if (const auto* text = std::get_if<std::string>(&value.v)) return parse_integer(*text);
  const auto* real = std::get_if<double>(&value.v);
  if (real == nullptr || !std::isfinite(*real)) return std::nullopt;
  if (*real >= 9.2e18) return kFar;
  if (*real <= -9.2e18) return -kFar;
  return static_cast<int64_t>(*real);
}

// The rows that a rotating layer holds; none if its state is not of the kind that is clamped.
std::optional<uint64_t> rows_of(const LayerState& layer, Profile profile) {
  const auto* state = std::get_if<NState>(&layer);
  if (state == nullptr || !is_pair(*state)) return std::nullopt;
  if (profile == Profile::kSeedExact && !state->class_name.empty()) return std::nullopt;
  const auto* keys = std::get_if<Tensor>(&state->elements[0].v);
  if (keys == nullptr || keys->shape.size() < 3) return std::nullopt;
  return keys->shape[2];
}

void clamp_layer(MetaState& meta, uint64_t rows) {
  const auto position = to_integer(meta[3]);
  if (!position || *position < 0 || static_cast<uint64_t>(*position) <= rows) return;
  meta.resize(4);
  meta[3].v = std::to_string(rows);
}

}  // namespace

std::vector<MetaState> clamp_rotating(const std::vector<LayerState>& layers,
                                      const std::vector<std::string>& types,
                                      std::vector<MetaState> meta_states, Profile profile) {
  for (size_t i = 0; i < layers.size(); ++i) {
    if (!is_rotating(types[i]) || meta_states[i].size() < 4) continue;
    if (const auto rows = rows_of(layers[i], profile)) clamp_layer(meta_states[i], *rows);
  }
  return meta_states;
}

}  // namespace kvkeep
