// SafetensorsHeader::parse: foreign bytes to a header, under the limits of B.18.

#include <algorithm>

#include "base/bytes.h"
#include "codec/safetensors_header.h"
#include "hash/json_document.h"

namespace kvkeep {
namespace {

using simdjson::SUCCESS;
using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

// { name: { "shape": [ … ] } }
constexpr size_t kHeaderDepthMax = 3;

// A name or text for a message: short and printable.
std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 80)) out += c >= 0x20 && c < 0x7f ? c : '?';
  return out;
}

bool read_numbers(element value, std::vector<uint64_t>& out) {
  array items;
  if (value.get_array().get(items) != SUCCESS) return false;
  for (const element item : items) {
    uint64_t number = 0;
    if (item.get_uint64().get(number) != SUCCESS) return false;
    out.push_back(number);
  }
  return true;
}

bool read_dtype(element value, DType& out) {
  std::string_view name;
  if (value.get_string().get(name) != SUCCESS) return false;
  const auto dtype = dtype_from_name(name);
  if (dtype) out = *dtype;
  return dtype.has_value();
}

// "" or what is wrong with the tensor's description.
std::string_view read_tensor(element value, TensorEntry& out) {
  object members;
  if (value.get_object().get(members) != SUCCESS) return "is not described by an object";
  unsigned seen = 0;
  size_t count = 0;
  std::vector<uint64_t> offsets;
  for (const auto member : members) {
    ++count;
    if (member.key == "dtype") {
      seen |= 1;
      if (!read_dtype(member.value, out.dtype)) return "has an unknown dtype";
    } else if (member.key == "shape") {
      seen |= 2;
      if (!read_numbers(member.value, out.shape)) return "has a malformed shape";
    } else if (member.key == "data_offsets") {
      seen |= 4;
      if (!read_numbers(member.value, offsets) || offsets.size() != 2)
        return "has malformed offsets";
    }
  }
  if (seen != 7 || count != 3) return "is not described by dtype, shape and data_offsets";
  out.begin = offsets[0];
  out.end = offsets[1];
  return "";
}

std::string_view check_tensor(const TensorEntry& entry, uint64_t data_bytes) {
  if (entry.begin > entry.end) return "ends before it begins";
  if (entry.end > data_bytes) return "ends behind the end of the file";
  const auto bytes = byte_size(entry.dtype, entry.shape);
  if (!bytes) return "has a shape that is too large";
  if (*bytes != entry.end - entry.begin) return "has a length that is not that of its shape";
  return "";
}

// The tensors cover the data section, each byte once.
Status check_coverage(const std::vector<TensorEntry>& tensors, uint64_t data_bytes) {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  ranges.reserve(tensors.size());
  for (const TensorEntry& entry : tensors) {
    if (entry.begin != entry.end) ranges.emplace_back(entry.begin, entry.end);
  }
  std::sort(ranges.begin(), ranges.end());
  uint64_t at = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin < at) return damaged("two tensors overlap at byte " + std::to_string(begin));
    if (begin > at) return damaged("no tensor covers the data at byte " + std::to_string(at));
    at = end;
  }
  if (at != data_bytes) {
    return damaged("tensors end at byte " + std::to_string(at) + " of " +
                   std::to_string(data_bytes));
  }
  return {};
}

Status read_metadata(element value, SafetensorsHeader& header) {
  if (value.is_null()) return {};
  object members;
  if (value.get_object().get(members) != SUCCESS) return damaged("__metadata__ is not an object");
  for (const auto member : members) {
    std::string_view text;
    if (member.value.get_string().get(text) != SUCCESS) {
      return damaged("the value of " + shown(member.key) + " is not a string");
    }
    if (!is_valid_utf8(member.key) || !is_valid_utf8(text)) {
      return damaged("the metadata member " + shown(member.key) + " is not Unicode");
    }
    header.add_metadata(std::string(member.key), std::string(text));
  }
  return {};
}

std::string_view without_padding(std::string_view text) {
  const size_t last = text.find_last_not_of(' ');
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

}  // namespace

Result<SafetensorsHeader> SafetensorsHeader::parse(std::string_view text, uint64_t data_bytes) {
  text = without_padding(text);
  if (text.empty() || text.front() != '{' || text.back() != '}') {
    return damaged("the header is not an object followed by spaces");
  }
  JsonDocument document;
  const auto root = document.parse(text, kHeaderDepthMax);
  if (document.out_of_memory()) return Status(Code::kResourceExhausted, "no memory for the header");
  object members;
  if (!root || root->get_object().get(members) != SUCCESS) return damaged("the header is not JSON");

  SafetensorsHeader header;
  bool has_metadata = false;
  for (const auto member : members) {
    if (member.key == "__metadata__") {
      if (has_metadata) return damaged("__metadata__ occurs twice");
      has_metadata = true;
      KVKEEP_TRY(read_metadata(member.value, header));
      continue;
    }
    TensorEntry entry;
    std::string_view fault = read_tensor(member.value, entry);
    if (fault.empty()) fault = check_tensor(entry, data_bytes);
    if (!is_valid_utf8(member.key)) fault = "has a name that is not Unicode";
    if (!fault.empty()) {
      return damaged("tensor " + shown(member.key) + " " + std::string(fault));
    }
    entry.name = member.key;
    header.tensors_.push_back(std::move(entry));
  }
  KVKEEP_TRY(check_coverage(header.tensors_, data_bytes));
  header.data_bytes_ = data_bytes;
  if (!header.build_lookup()) return damaged("a name occurs twice");
  return header;
}

}  // namespace kvkeep
