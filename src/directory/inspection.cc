#include "directory/inspection.h"

#include <charconv>

#include "codec/block_codec.h"
#include "codec/block_metadata.h"
#include "codec/parsed_file.h"
#include "codec/state_names.h"
#include "directory/verification.h"

namespace kvkeep {
namespace {

// The number in "layer_<n>_…"; none for any other name.
std::optional<uint32_t> layer_of(std::string_view tensor) {
  constexpr std::string_view kPrefix = "layer_";
  if (tensor.substr(0, kPrefix.size()) != kPrefix) return std::nullopt;
  tensor.remove_prefix(kPrefix.size());
  uint32_t layer = 0;
  const auto [end, error] = std::from_chars(tensor.data(), tensor.data() + tensor.size(), layer);
  if (error != std::errc() || end == tensor.data() + tensor.size() || *end != '_')
    return std::nullopt;
  return layer;
}

std::string kind_of(const SafetensorsHeader& header, uint32_t layer) {
  const std::string prefix = layer_prefix(layer);
  if (header.value(prefix + "_turboquant_v2") != nullptr) return "turboquant";
  const std::string* count = header.value(prefix + "_state_count");
  if (count == nullptr && header.value(prefix + "_sub_count") != nullptr) return "cache_list";
  const bool nested = header.value(element_name(prefix, 0) + "_nested") != nullptr ||
                      header.value(element_name(prefix, 1) + "_nested") != nullptr;
  return count == nullptr || (*count == "2" && !nested) ? "pair" : "nstate";
}

TensorRow row_of(const SafetensorsHeader& header, const TensorEntry& entry) {
  TensorRow row{entry.name, place_of(entry.name), entry.dtype, entry.shape};
  row.bytes = entry.end - entry.begin;
  row.is_null = header.value(entry.name + "_none") != nullptr;
  if (const std::string* shape = header.value(entry.name + "_zero_dim")) {
    if (auto parsed = parse_zero_dim(*shape)) row.shape = *std::move(parsed);
  }
  return row;
}

std::vector<LayerRow> layers_of(const SafetensorsHeader& header, const BlockInfo& info) {
  std::vector<LayerRow> layers;
  for (const TensorEntry& entry : header.tensors()) {
    const std::optional<uint32_t> number = layer_of(entry.name);
    if (!number) continue;
    if (layers.empty() || layers.back().layer != *number) {
      layers.push_back({*number, kind_of(header, *number)});
      const bool typed = info.layer_types && *number < info.layer_types->size();
      if (typed) layers.back().type = (*info.layer_types)[*number];
    }
    layers.back().tensors.push_back(row_of(header, entry));
    layers.back().bytes += entry.end - entry.begin;
  }
  return layers;
}

DigestState digest_of(const ParsedFile& parsed, BytesView file) {
  const Result<FileDigestState> state = digest_state(parsed, file);
  if (!state.ok()) return DigestState::kWrong;
  switch (*state) {
    case FileDigestState::kMissing:
      return DigestState::kMissing;
    case FileDigestState::kRight:
      return DigestState::kOk;
    case FileDigestState::kWrong:
      break;
  }
  return DigestState::kWrong;
}

// What the header says of the block, as listing would have found it.
FoundBlock found_block(const InspectedFile& file, const WholeFile& whole,
                       const Result<BlockHeader>& header) {
  const bool told = header.ok();
  const BlockHash hash = file.expected ? *file.expected : header->hash;
  FoundBlock found{hash, whole.stat.size, whole.stat.allocated, whole.stat.mtime, std::nullopt, {}};
  found.why = header.status().miss_reason().value_or(MissReason::kUnreadable);
  if (!told) {
    if (found.why == MissReason::kDamaged) found.why = MissReason::kUnreadable;
  } else if (header->hash == hash) {
    found.header = *header;
  } else {
    found.why = MissReason::kDamaged;
  }
  return found;
}

void describe(const ParsedFile& parsed, BytesView bytes, const Result<BlockHeader>& header,
              BlockInspection& out) {
  out.metadata = parsed.header.metadata();
  out.layers = layers_of(parsed.header, header.ok() ? header->info : BlockInfo());
  out.digest = digest_of(parsed, bytes);
}

}  // namespace

Result<BlockInspection> inspect(FileSystem& file_system, const InspectedFile& file,
                                const NamespaceNames& names) {
  const auto pool = make_file_pool();
  KVKEEP_TRY_ASSIGN(WholeFile whole, read_whole_file(file_system, file.path, *pool));
  const BytesView bytes{whole.buffer.data(), static_cast<size_t>(whole.stat.size)};
  const Result<BlockHeader> header = decode_header(bytes, whole.stat.size);
  if (!header.ok() && !file.expected) {
    return Status(
        Code::kDataLoss, MissReason::kDamaged,
        "'" + file.shown.string() + "' is not a block file: " + header.status().message());
  }
  BlockInspection out{record_of({}, found_block(file, whole, header), names)};
  out.record.meta.path = file.shown;
  if (const Result<ParsedFile> parsed = parse_file(bytes, whole.stat.size); parsed.ok()) {
    describe(*parsed, bytes, header, out);
  }
  out.verdict =
      decode_image(std::move(whole.buffer), whole.stat.size, {file.expected, false}).status();
  return out;
}

}  // namespace kvkeep
