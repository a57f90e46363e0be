#include "codec/safetensors_header.h"

#include <algorithm>
#include <numeric>

#include "hash/json_text.h"

namespace kvkeep {
namespace {

// Sorted positions 0 … count-1; empty if two names are equal.
template <typename NameAt>
bool sort_positions(size_t count, const NameAt& name_at, std::vector<uint32_t>& positions) {
  positions.resize(count);
  std::iota(positions.begin(), positions.end(), 0u);
  std::sort(positions.begin(), positions.end(),
            [&](uint32_t a, uint32_t b) { return name_at(a) < name_at(b); });
  const auto twice =
      std::adjacent_find(positions.begin(), positions.end(),
                         [&](uint32_t a, uint32_t b) { return name_at(a) == name_at(b); });
  return twice == positions.end();
}

template <typename NameAt>
const uint32_t* find_position(const std::vector<uint32_t>& positions, const NameAt& name_at,
                              std::string_view name) {
  const auto at = std::lower_bound(positions.begin(), positions.end(), name,
                                   [&](uint32_t p, std::string_view n) { return name_at(p) < n; });
  return at != positions.end() && name_at(*at) == name ? &*at : nullptr;
}

void append_numbers(std::string& out, const Shape& numbers) {
  out += '[';
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) out += ',';
    out += std::to_string(numbers[i]);
  }
  out += ']';
}

bool append_tensor(std::string& out, const TensorEntry& entry) {
  if (!append_json_string(out, entry.name)) return false;
  out += ":{\"dtype\":\"";
  out += name_of(entry.dtype);
  out += "\",\"shape\":";
  append_numbers(out, entry.shape);
  out += ",\"data_offsets\":";
  append_numbers(out, {entry.begin, entry.end});
  out += '}';
  return true;
}

}  // namespace

void SafetensorsHeader::add_tensor(std::string name, DType dtype, Shape shape) {
  const uint64_t begin = data_bytes_;
  data_bytes_ += *byte_size(dtype, shape);
  tensors_.push_back({std::move(name), dtype, std::move(shape), begin, data_bytes_});
}

void SafetensorsHeader::add_metadata(std::string key, std::string value) {
  metadata_.emplace_back(std::move(key), std::move(value));
}

bool SafetensorsHeader::build_lookup() {
  const auto name_at = [this](uint32_t i) -> const std::string& { return tensors_[i].name; };
  const auto key_at = [this](uint32_t i) -> const std::string& { return metadata_[i].first; };
  return sort_positions(tensors_.size(), name_at, by_name_) &&
         sort_positions(metadata_.size(), key_at, by_key_);
}

Result<std::string> SafetensorsHeader::to_json() const {
  std::string out = "{";
  for (const TensorEntry& entry : tensors_) {
    if (out.size() > 1) out += ',';
    if (!append_tensor(out, entry)) {
      return Status(Code::kInvalidArgument, "the name of a tensor is not UTF-8");
    }
  }
  if (!metadata_.empty()) {
    if (out.size() > 1) out += ',';
    out += "\"__metadata__\":{";
    for (size_t i = 0; i < metadata_.size(); ++i) {
      if (i > 0) out += ',';
      const auto& [key, value] = metadata_[i];
      if (!append_json_string(out, key)) {
        return Status(Code::kInvalidArgument, "a metadata key is not UTF-8");
      }
      out += ':';
      if (!append_json_string(out, value)) {
        return Status(Code::kInvalidArgument, "the value of " + key + " is not UTF-8");
      }
    }
    out += '}';
  }
  return out + "}";
}

const TensorEntry* SafetensorsHeader::find(std::string_view tensor) const {
  const auto name_at = [this](uint32_t i) -> std::string_view { return tensors_[i].name; };
  const uint32_t* at = find_position(by_name_, name_at, tensor);
  return at == nullptr ? nullptr : &tensors_[*at];
}

const std::string* SafetensorsHeader::value(std::string_view key) const {
  const auto key_at = [this](uint32_t i) -> std::string_view { return metadata_[i].first; };
  const uint32_t* at = find_position(by_key_, key_at, key);
  return at == nullptr ? nullptr : &metadata_[*at].second;
}

Status damaged(std::string message) {
  return Status(Code::kDataLoss, MissReason::kDamaged, std::move(message));
}

}  // namespace kvkeep
