// The worked examples of docs/contract.md B.19, byte for byte.

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "codec/block_codec.h"
#include "hash/sha256.h"
#include "testing/proves.h"
#include "testing/test_images.h"

namespace kvkeep {
namespace {

std::string sha256_hex(BytesView bytes) {
  Sha256 sha;
  sha.start();
  sha.add(bytes);
  return to_hex(*sha.finish());
}

BlockHash hash_of(const std::string& hex) { return *BlockHash::from_hex(hex); }

// Tensors whose bytes continue the sequence p mod 251 over the whole data section.
class Sequence {
 public:
  Tensor next(DType dtype, Shape shape) {
    const uint64_t bytes = *byte_size(dtype, shape);
    std::vector<std::byte> data(bytes);
    for (std::byte& b : data) b = static_cast<std::byte>(position_++ % 251);
    return *tensor_from_bytes(data, dtype, std::move(shape));
  }
  // Stand-ins take room, too.
  void skip(uint64_t bytes) { position_ += bytes; }

 private:
  uint64_t position_ = 0;
};

MetaValue number(int64_t n) { return {n}; }
MetaValue text(std::string s) { return {std::move(s)}; }
MetaValue list(std::vector<MetaValue> items) { return {std::move(items)}; }

struct Example {
  BlockHash hash;
  BlockInput input;
  uint32_t block_size = 0;
  std::optional<double> bits;
};

struct Golden {
  uint64_t header_bytes;
  uint64_t file_bytes;
  std::string sha256;
};

ImagePtr encoded(const Example& example, Profile profile) {
  EncodeContext context;
  context.created_at = 1767225600.25;
  context.block_size = example.block_size;
  context.turboquant_bits = example.bits;
  context.profile = profile;
  BufferPool::Options options;
  options.limit_bytes = 1 << 20;
  auto image = encode_block(example.hash, example.input, context, *BufferPool::create(options));
  EXPECT_TRUE(image.ok()) << image.status().to_string();
  return *image;
}

void expect_golden(const Image& image, const Golden& golden) {
  EXPECT_EQ(load_le<uint64_t>(image.bytes().data()), golden.header_bytes);
  EXPECT_EQ(image.file_bytes(), golden.file_bytes);
  EXPECT_EQ(sha256_hex(image.bytes()), golden.sha256) << as_text(image.bytes().first(2048));
}

void expect_digest(const Image& image, std::string_view digits) {
  EXPECT_NE(as_text(image.bytes()).find("\"kvkeep_xxh3\":\"" + std::string(digits) + "\"}}"),
            std::string_view::npos);
}

Example plain_layer() {
  Sequence sequence;
  Example example{hash_of("abc123def456" + std::string(52, '0')), {}, 0, {}};
  auto keys = sequence.next(DType::kF16, {1, 2, 4, 4});
  auto values = sequence.next(DType::kF16, {1, 2, 4, 4});
  example.input.layers.emplace_back(make_pair_state(std::move(keys), std::move(values)));
  example.input.token_count = 4;
  example.input.model_name = "test-model";
  example.input.layer_types = {{"KVCache"}};
  example.input.meta_states = {{MetaState{number(4)}}};
  return example;
}

Example hybrid() {
  Sequence s;
  Example example{
      hash_of("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"), {}, 256, {}};
  auto keys = s.next(DType::kBF16, {1, 2, 4, 8});
  auto values = s.next(DType::kBF16, {1, 2, 4, 8});
  example.input.layers.emplace_back(make_pair_state(std::move(keys), std::move(values)));

  CacheList caches;
  keys = s.next(DType::kF32, {1, 1, 4, 2});
  values = s.next(DType::kF32, {1, 1, 4, 1});
  caches.subs.push_back(make_pair_state(std::move(keys), std::move(values)));
  NState sub{"KVCache", {}};
  sub.elements.push_back({s.next(DType::kF16, {1, 1, 4, 2})});
  sub.elements.push_back({s.next(DType::kF32, {1, 1, 4, 0})});
  s.skip(4);
  caches.subs.push_back(std::move(sub));
  example.input.layers.emplace_back(std::move(caches));

  NState pooling{"PoolingCache", {}};
  pooling.elements.push_back({s.next(DType::kU8, {1, 3})});
  pooling.elements.push_back({Null{}});
  s.skip(4);
  ElementTuple tuple;
  tuple.elements.push_back({s.next(DType::kF32, {2})});
  tuple.elements.push_back({s.next(DType::kI32, {2})});
  pooling.elements.push_back({std::move(tuple)});
  NState inner{"InnerState", {}};
  inner.elements.push_back({s.next(DType::kBool, {4})});
  pooling.elements.push_back({std::move(inner)});
  example.input.layers.emplace_back(std::move(pooling));

  example.input.token_count = 4;
  example.input.model_name = "org/\u30e2\u30c7\u30eb-7B";
  example.input.layer_types = {{"BufferedRotatingKVCache", "CacheList", "PoolingCache"}};
  example.input.meta_states = {{MetaState{text("0"), text("1024"), text("2048"), text("9")},
                                MetaState{list({text("KVCache"), text("KVCache")}),
                                          list({list({number(4)}), list({number(4)})})},
                                MetaState{}}};
  return example;
}

Example turboquant() {
  Sequence s;
  Example example{hash_of(std::string(64, 'f')), {}, 64, 6.0};
  TurboQuantState state;
  state.key.type = "TurboQuantProdState";
  state.key.fields.emplace_back("norms", s.next(DType::kF32, {1, 2, 4}));
  state.key.fields.emplace_back("mse_indices", s.next(DType::kU32, {1, 2, 4, 1}));
  state.key.fields.emplace_back("residual_norms", s.next(DType::kF32, {1, 2, 4}));
  state.key.fields.emplace_back("qjl_signs", s.next(DType::kU32, {1, 2, 4, 1}));
  state.value.type = "TurboQuantMSEState";
  state.value.fields.emplace_back("norms", s.next(DType::kF32, {1, 2, 4}));
  state.value.fields.emplace_back("indices", s.next(DType::kU32, {1, 2, 4, 1}));
  example.input.layers.emplace_back(std::move(state));
  auto keys = s.next(DType::kBF16, {1, 2, 4, 8});
  auto values = s.next(DType::kBF16, {1, 2, 4, 8});
  example.input.layers.emplace_back(make_pair_state(std::move(keys), std::move(values)));
  example.input.token_count = 64;
  example.input.model_name = "m";
  example.input.layer_types = {{"TurboQuantKVCache", "KVCache"}};
  example.input.meta_states = {
      {MetaState{number(64), MetaValue{3.5}, number(0)}, MetaState{number(64)}}};
  return example;
}

TEST(Golden, PlainLayerIsByteIdentical) {
  testing::proves("ENC-11", "SAVE-08", "SAVE-09");
  const auto seed = encoded(plain_layer(), Profile::kSeedExact);
  expect_golden(*seed,
                {600, 736, "212522bad4c51fb0056c5ddd66565d8f189a7e5296982df0c6723f0fef49784e"});
  EXPECT_FALSE(seed->header().has_digest);
  const auto extended = encoded(plain_layer(), Profile::kExtended);
  expect_golden(*extended,
                {696, 832, "b894c010a2bd7a911f5efdbdb6fbc51629a25d1362673e21e631e93b75711895"});
  expect_digest(*extended, "243ac953b66f1859b417c918a917a80b");
}

TEST(Golden, HybridBlockIsByteIdentical) {
  testing::proves("ENC-11", "SAVE-06", "SAVE-10", "DEF-48");
  expect_golden(*encoded(hybrid(), Profile::kSeedExact),
                {1960, 2319, "0bdbc918badc32afdcbc4b64f2883d4ddcf680f5a8d73b112d3953821f9d4c6d"});
  const auto extended = encoded(hybrid(), Profile::kExtended);
  expect_golden(*extended,
                {2040, 2399, "e44088cde4412e512541993278a85f85efd53008c8238f5c768dade57ef445d6"});
  expect_digest(*extended, "268f9904614bcf44d90796d2f67fefec");
}

TEST(Golden, TurboQuantBlockIsByteIdentical) {
  testing::proves("ENC-11", "TQ-11", "SAVE-10");
  expect_golden(*encoded(turboquant(), Profile::kSeedExact),
                {1392, 1848, "c1332fd236636b1103f527a876224eb15703366650befa01cd0dda2b2cb576f1"});
  const auto extended = encoded(turboquant(), Profile::kExtended);
  expect_golden(*extended,
                {1464, 1920, "abfcb6cc722ebc166b6a9c24a7fc16345cd258ac0ddad6685f78488e79c01209"});
  expect_digest(*extended, "bc60926b509883497bf5379b6e91b43a");
}

class LegacyFile : public ::testing::Test {
 protected:
  // Example 4 with another version member and more metadata.
  static Result<ImagePtr> decoded(const std::string& version, const std::string& more = "") {
    const std::string header =
        R"({"__metadata__":{"block_hash":"0101","block_size":"32","cache_signature":"",)"
        R"("created_at":"0","model_name":"m","num_layers":"1",)" +
        version + more +
        R"("token_count":"32"},"layer_0_keys":{"data_offsets":[0,64],"dtype":"F16",)"
        R"("shape":[1,2,4,4]},"layer_0_values":{"data_offsets":[64,68],"dtype":"F32",)"
        R"("shape":[1]}})";
    const std::vector<std::byte> data(68, std::byte{7});
    return testing::decode(testing::raw_file(header, data));
  }
};

constexpr std::string_view kVersion2 = R"("omlx_cache_format_version":"2",)";

TEST_F(LegacyFile, LoadsAsAPair) {
  testing::proves("STATE-11", "RUL-16");
  const auto image = decoded(std::string(kVersion2));
  ASSERT_TRUE(image.ok()) << image.status().to_string();
  const LoadedBlock block = Image::lend(*image, Source::kDisk);
  ASSERT_EQ(block.layers.size(), 1u);
  const auto& pair = std::get<NState>(block.layers[0]);
  ASSERT_TRUE(is_pair(pair));
  EXPECT_EQ(std::get<Tensor>(pair.elements[0].v).shape, (Shape{1, 2, 4, 4}));
  EXPECT_EQ(std::get<Tensor>(pair.elements[1].v).shape, (Shape{1}));
  EXPECT_FALSE(block.info.layer_types);
  EXPECT_FALSE(block.info.meta_states);
  EXPECT_FALSE((*image)->header().has_digest);
  EXPECT_EQ((*image)->header().created_at, 0.0);
}

TEST_F(LegacyFile, KeepsATensorWithoutElements) {
  testing::proves("STATE-11", "STATE-05");
  const auto image = decoded(std::string(kVersion2), R"("layer_0_values_zero_dim":"1,2,4,0",)");
  ASSERT_TRUE(image.ok()) << image.status().to_string();
  const LoadedBlock block = Image::lend(*image, Source::kDisk);
  const auto& values = std::get<Tensor>(std::get<NState>(block.layers[0]).elements[1].v);
  EXPECT_EQ(values.shape, (Shape{1, 2, 4, 0}));
  EXPECT_EQ(values.dtype, DType::kF32);
  EXPECT_TRUE(values.data.view.empty());
}

TEST_F(LegacyFile, LoadsUnderVersion3) {
  testing::proves("STATE-11");
  EXPECT_TRUE(decoded(R"("omlx_cache_format_version":"3",)").ok());
}

TEST_F(LegacyFile, OfAnotherVersionIsAMiss) {
  for (const std::string version :
       {"", R"("omlx_cache_format_version":"1",)", R"("omlx_cache_format_version":"4",)",
        R"("omlx_cache_format_version":"03",)", R"("omlx_cache_format_version":"",)"}) {
    const Status status = decoded(version).status();
    EXPECT_EQ(status.code(), Code::kNotFound) << version;
    EXPECT_EQ(status.miss_reason(), MissReason::kVersion) << version;
  }
}

}  // namespace
}  // namespace kvkeep
