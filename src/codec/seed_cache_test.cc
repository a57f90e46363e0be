// Every block of tests/data/seed-cache decodes to what its manifest says.

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "codec/block_codec.h"
#include "hash/sha256.h"
#include "hash/signature.h"
#include "testing/proves.h"
#include "testing/test_images.h"

namespace kvkeep {
namespace {

using nlohmann::json;

std::string read_file(const std::string& path) {
  std::ifstream in(std::string(KVKEEP_TEST_DATA) + "/seed-cache/" + path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::string sha256_hex(BytesView bytes) {
  Sha256 sha;
  sha.start();
  sha.add(bytes);
  return to_hex(*sha.finish());
}

// The contents of a block as the manifest lists them.
class Listing {
 public:
  explicit Listing(const LoadedBlock& block) {
    for (size_t i = 0; i < block.layers.size(); ++i) layer(std::to_string(i), block.layers[i]);
  }
  const std::vector<std::pair<std::string, json>>& rows() const { return rows_; }

 private:
  void add(const std::string& at, json row) { rows_.emplace_back(at, std::move(row)); }

  void layer(const std::string& at, const LayerState& state) {
    if (const auto* list = std::get_if<CacheList>(&state)) {
      add(at, {{"cache_list", list->subs.size()}});
      for (size_t j = 0; j < list->subs.size(); ++j) {
        nstate(at + ".sub" + std::to_string(j), list->subs[j]);
      }
    } else if (const auto* packed = std::get_if<TurboQuantState>(&state)) {
      add(at, {{"turboquant", {packed->key.type, packed->value.type}}});
      record(at + ".k.", packed->key);
      record(at + ".v.", packed->value);
    } else {
      nstate(at, std::get<NState>(state));
    }
  }
  void record(const std::string& at, const PackedRecord& record) {
    for (const auto& [name, field] : record.fields) tensor(at + name, field);
  }
  void nstate(const std::string& at, const NState& state) {
    if (is_pair(state) && state.class_name.empty()) {
      add(at, {{"tuple", 2}});
    } else {
      add(at, {{"nstate", state.class_name}, {"elements", state.elements.size()}});
    }
    elements(at, state.elements);
  }
  void elements(const std::string& at, const std::vector<Element>& list) {
    for (size_t i = 0; i < list.size(); ++i) element(at + "." + std::to_string(i), list[i]);
  }
  void element(const std::string& at, const Element& element) {
    if (const auto* t = std::get_if<Tensor>(&element.v)) return tensor(at, *t);
    if (const auto* state = std::get_if<NState>(&element.v)) return nstate(at, *state);
    if (const auto* tuple = std::get_if<ElementTuple>(&element.v)) {
      add(at, {{"tuple", tuple->elements.size()}});
      return elements(at, tuple->elements);
    }
    add(at, {{"none", true}});
  }
  void tensor(const std::string& at, const Tensor& tensor) {
    add(at, {{"dtype", name_of(tensor.dtype)},
             {"shape", tensor.shape},
             {"sha256", sha256_hex(tensor.data.view)}});
  }

  std::vector<std::pair<std::string, json>> rows_;
};

json to_json(const MetaValue& value) {
  if (const auto* list = std::get_if<std::vector<MetaValue>>(&value.v)) {
    json out = json::array();
    for (const MetaValue& item : *list) out.push_back(to_json(item));
    return out;
  }
  if (const auto* text = std::get_if<std::string>(&value.v)) return *text;
  if (const auto* number = std::get_if<int64_t>(&value.v)) return *number;
  if (const auto* real = std::get_if<double>(&value.v)) return *real;
  if (const auto* flag = std::get_if<bool>(&value.v)) return *flag;
  return nullptr;
}

void expect_info(const json& row, const BlockInfo& info) {
  EXPECT_EQ(info.token_count, row["token_count"].get<uint32_t>());
  EXPECT_EQ(info.model_name, row["model_name"].get<std::string>());
  ASSERT_EQ(info.layer_types.has_value(), !row["layer_types"].is_null());
  if (info.layer_types) {
    EXPECT_EQ(*info.layer_types, storage_types(row["layer_types"].get<std::vector<std::string>>()));
  }
  ASSERT_EQ(info.meta_states.has_value(), !row["meta_states"].is_null());
  if (!info.meta_states) return;
  json meta_states = json::array();
  for (const MetaState& meta : *info.meta_states) meta_states.push_back(to_json(MetaValue{meta}));
  json expected = row["meta_states"];
  // The manifest lists what was given; the file holds the clamped position.
  if (row["name"] == "rotating") expected[0][3] = "12";
  EXPECT_EQ(meta_states, expected);
}

TEST(SeedCache, EveryBlockDecodesAsTheManifestSays) {
  testing::proves("RUL-16", "RUL-67", "STATE-07", "TQ-11", "STATE-11");
  const json manifest = json::parse(read_file("manifest.json"));
  ASSERT_EQ(manifest.size(), 14u);
  for (const json& row : manifest) {
    SCOPED_TRACE(row["name"].get<std::string>());
    const std::string bytes = read_file(row["file"].get<std::string>());
    ASSERT_EQ(sha256_hex(as_byte_span(bytes)), row["file_sha256"].get<std::string>());
    DecodeContext context;
    context.expected = *BlockHash::from_hex(row["key"].get<std::string>());
    const auto image = testing::decode(as_byte_span(bytes), context);
    ASSERT_TRUE(image.ok()) << image.status().to_string();
    EXPECT_FALSE((*image)->header().has_digest);
    const LoadedBlock block = Image::lend(*image, Source::kDisk);
    expect_info(row, block.info);
    const Listing listing(block);
    ASSERT_EQ(listing.rows().size(), row["contents"].size());
    for (size_t i = 0; i < listing.rows().size(); ++i) {
      json expected = row["contents"][i];
      EXPECT_EQ(listing.rows()[i].first, expected["at"].get<std::string>());
      expected.erase("at");
      EXPECT_EQ(listing.rows()[i].second, expected) << listing.rows()[i].first;
    }
  }
}

TEST(SeedCache, IsRefusedWhereADigestIsRequired) {
  testing::proves("RUL-16");
  const json manifest = json::parse(read_file("manifest.json"));
  DecodeContext context;
  context.require_digest = true;
  for (const json& row : manifest) {
    const std::string bytes = read_file(row["file"].get<std::string>());
    const Status status = testing::decode(as_byte_span(bytes), context).status();
    EXPECT_EQ(status.code(), Code::kNotFound);
    EXPECT_EQ(status.miss_reason(), MissReason::kUndigested);
  }
}

TEST(SeedCache, EncodesToTheSameBytesAgain) {
  testing::proves("ENC-11");
  // Lists of manifest["contents"] are not needed: what was loaded is saved again.
  const json manifest = json::parse(read_file("manifest.json"));
  for (const json& row : manifest) {
    if (row["name"] == "legacy-v2") continue;
    SCOPED_TRACE(row["name"].get<std::string>());
    const std::string bytes = read_file(row["file"].get<std::string>());
    const auto image = *testing::decode(as_byte_span(bytes));
    const LoadedBlock block = Image::lend(image, Source::kDisk);
    BlockInput input;
    input.layers = block.layers;
    input.token_count = block.info.token_count;
    input.model_name = block.info.model_name;
    input.layer_types = block.info.layer_types;
    input.meta_states = block.info.meta_states;
    EncodeContext context;
    context.created_at = *image->header().created_at;
    context.block_size = block.info.block_size;
    context.profile = Profile::kSeedExact;
    BufferPool::Options options;
    options.limit_bytes = 16 << 20;
    const auto again =
        encode_block(image->header().hash, input, context, *BufferPool::create(options));
    ASSERT_TRUE(again.ok()) << again.status().to_string();
    EXPECT_EQ(sha256_hex((*again)->bytes()), row["file_sha256"].get<std::string>());
  }
}

}  // namespace
}  // namespace kvkeep
