// What was encoded is what comes back: from the image at once, and from a copy of its bytes.

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "codec/block_codec.h"
#include "testing/block_compare.h"
#include "testing/proves.h"
#include "testing/test_images.h"

namespace kvkeep {
namespace {

using testing::difference;
using testing::TestBlock;

class RoundTrip : public ::testing::TestWithParam<Profile> {};

INSTANTIATE_TEST_SUITE_P(Profiles, RoundTrip,
                         ::testing::Values(Profile::kExtended, Profile::kSeedExact),
                         [](const auto& tested) {
                           return tested.param == Profile::kExtended ? "Extended" : "SeedExact";
                         });

void expect_round_trip(const TestBlock& block, Profile profile) {
  SCOPED_TRACE(block.name);
  const auto image = testing::encode(block, profile);
  ASSERT_TRUE(image.ok()) << image.status().to_string();
  EXPECT_EQ(difference(block.input, Image::lend(*image, Source::kPending), profile), "");
  DecodeContext context;
  context.expected = block.hash;
  context.require_digest = profile == Profile::kExtended;
  const auto decoded = testing::decode((*image)->bytes(), context);
  ASSERT_TRUE(decoded.ok()) << decoded.status().to_string();
  EXPECT_EQ(difference(block.input, Image::lend(*decoded, Source::kDisk), profile), "");
  EXPECT_EQ((*decoded)->misaligned_tensors(), (*image)->misaligned_tensors());
  EXPECT_EQ((*decoded)->header().info.signature, (*image)->header().info.signature);
  const auto expected_identity = profile == Profile::kExtended ? block.identity : std::nullopt;
  EXPECT_EQ((*decoded)->header().identity, expected_identity);
  EXPECT_EQ((*decoded)->header().created_at, 1767225600.25);
}

TEST_P(RoundTrip, KeepsEveryKindOfState) {
  testing::proves("STATE-01", "STATE-02", "STATE-03", "STATE-04", "STATE-05");
  for (const TestBlock& block : testing::all_kinds()) {
    if (GetParam() == Profile::kSeedExact && block.extended_only) continue;
    expect_round_trip(block, GetParam());
  }
}

TEST_P(RoundTrip, KeepsCacheListsAndPlaceholders) {
  testing::proves("STATE-06", "STATE-08", "STATE-09", "STATE-10", "DEF-45");
  size_t seen = 0;
  for (const TestBlock& block : testing::all_kinds()) {
    const bool list = block.name.substr(0, 10) == "cache list" || block.name == "placeholder";
    if (!list) continue;
    ++seen;
    expect_round_trip(block, GetParam());
  }
  EXPECT_EQ(seen, 7u);
}

TEST_P(RoundTrip, KeepsLargeBlocks) {
  expect_round_trip(testing::blk(1), GetParam());
  expect_round_trip(testing::mib(2, 2), GetParam());
}

TEST_P(RoundTrip, DecodesTheHeaderAlone) {
  for (const TestBlock& block : testing::all_kinds()) {
    if (GetParam() == Profile::kSeedExact && block.extended_only) continue;
    SCOPED_TRACE(block.name);
    const auto image = *testing::encode(block, GetParam());
    const auto needed = header_bytes(image->bytes().first(8), image->file_bytes());
    ASSERT_TRUE(needed.ok());
    const auto header = decode_header(image->bytes().first(*needed), image->file_bytes());
    ASSERT_TRUE(header.ok()) << header.status().to_string();
    EXPECT_EQ(header->hash, block.hash);
    EXPECT_EQ(header->info.signature, image->header().info.signature);
    EXPECT_EQ(header->info.parent, image->header().info.parent);
    EXPECT_EQ(header->identity, image->header().identity);
    EXPECT_EQ(header->has_digest, GetParam() == Profile::kExtended);
  }
}

TEST_P(RoundTrip, AllowsNestingOf32LevelsAndNoMore) {
  testing::proves("STATE-04");
  expect_round_trip(testing::nested(32), GetParam());
  const Status status = testing::encode(testing::nested(33), GetParam()).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("layer 0, element 0.0.0"), std::string::npos) << status.message();
}

TEST_P(RoundTrip, EncodesTheSameBytesEachTime) {
  for (const TestBlock& block : testing::all_kinds()) {
    if (GetParam() == Profile::kSeedExact && block.extended_only) continue;
    const auto a = *testing::encode(block, GetParam());
    const auto b = *testing::encode(block, GetParam());
    EXPECT_EQ(as_text(a->bytes()), as_text(b->bytes())) << block.name;
  }
}

TEST_P(RoundTrip, KnowsTheExactSizeBeforehand) {
  testing::proves("DEF-24");
  for (const TestBlock& block : testing::all_kinds()) {
    if (GetParam() == Profile::kSeedExact && block.extended_only) continue;
    const auto bytes =
        encoded_bytes(block.hash, block.input, testing::test_context(GetParam(), block));
    ASSERT_TRUE(bytes.ok());
    EXPECT_EQ(*bytes, (*testing::encode(block, GetParam()))->file_bytes()) << block.name;
  }
  for (const uint64_t bytes : {2000u, 4096u, 100001u, 300000u, 1000000u}) {
    const TestBlock block = testing::sized(9, bytes, GetParam());
    EXPECT_EQ((*testing::encode(block, GetParam()))->file_bytes(), bytes);
  }
}

TEST(Image, LendsViewsThatKeepItAlive) {
  testing::proves("DEF-77", "RUL-67");
  const TestBlock block = testing::blk(3);
  auto image = *testing::encode(block);
  const std::weak_ptr<const Image> watched = image;
  const BytesView bytes = image->bytes();
  std::optional<LoadedBlock> loaded = Image::lend(image, Source::kPending);
  image.reset();
  ASSERT_FALSE(watched.expired());
  const auto& keys = std::get<Tensor>(std::get<NState>(loaded->layers[0]).elements[0].v);
  EXPECT_GE(keys.data.view.data(), bytes.data());
  EXPECT_LE(keys.data.view.data() + keys.data.view.size(), bytes.data() + bytes.size());
  EXPECT_TRUE(testing::is_payload(keys, 3));
  loaded.reset();
  EXPECT_TRUE(watched.expired());
}

TEST(Image, CopiesAndCountsMisalignedTensors) {
  testing::proves("RUL-67");
  for (const TestBlock& block : testing::all_kinds()) {
    const auto image = *testing::encode(block);
    if (block.name != "every dtype, misaligned") continue;
    EXPECT_GT(image->misaligned_tensors(), 0u);
    const LoadedBlock loaded = Image::lend(image, Source::kPending);
    for (const Element& element : std::get<NState>(loaded.layers[0]).elements) {
      const auto& tensor = std::get<Tensor>(element.v);
      const auto address = reinterpret_cast<uintptr_t>(tensor.data.view.data());
      EXPECT_EQ(address % element_bytes(tensor.dtype), 0u);
    }
  }
}

TEST(Image, IsPaddedWithZerosForDirectWrites) {
  BufferPool::Options options;
  options.limit_bytes = 64 << 20;
  const auto pool = BufferPool::create(options);
  const TestBlock block = testing::blk(4);
  {
    auto dirty = *pool->allocate(1 << 20);
    std::memset(dirty.data(), 0xee, dirty.capacity());
  }
  const auto image = *encode_block(block.hash, block.input,
                                   testing::test_context(Profile::kExtended, block), *pool);
  auto buffer = *pool->allocate(image->file_bytes());
  std::memset(buffer.data(), 0xee, buffer.capacity());
  std::memcpy(buffer.data(), image->bytes().data(), image->file_bytes());
  const auto decoded = *decode_image(std::move(buffer), image->file_bytes(), {});
  for (const auto& each : {image, decoded}) {
    EXPECT_EQ(each->padded().size() % 4096, 0u);
    EXPECT_LT(each->padded().size() - each->file_bytes(), 4096u);
    for (const std::byte b : each->padded().subspan(each->file_bytes())) {
      ASSERT_EQ(b, std::byte{0});
    }
  }
}

TEST(Image, AlignsItsDataSection) {
  const auto data_at = [](const TestBlock& block) {
    return header_bytes((*testing::encode(block))->bytes().first(8), uint64_t{1} << 40);
  };
  EXPECT_EQ(*data_at(testing::blk(1)) % 64, 0u);
  EXPECT_EQ(*data_at(testing::mib(1, 1)) % 4096, 0u);
}

TEST(ZeroDim, KeepsItsDtypeInTheExtendedProfileOnly) {
  testing::proves("DEF-44", "STATE-05");
  TestBlock block = testing::blk(1);
  block.input.layers[0] = make_pair_state(testing::payload(DType::kI16, {2, 0}, 1),
                                          testing::payload(DType::kBool, {0}, 1));
  const auto dtype = [&](Profile profile) {
    const auto loaded = Image::lend(*testing::encode(block, profile), Source::kPending);
    return std::get<Tensor>(std::get<NState>(loaded.layers[0]).elements[0].v).dtype;
  };
  EXPECT_EQ(dtype(Profile::kExtended), DType::kI16);
  EXPECT_EQ(dtype(Profile::kSeedExact), DType::kF32);
}

TEST(Pair, KeepsItsClassName) {
  testing::proves("DEF-47");
  TestBlock block = testing::blk(1);
  std::get<NState>(block.input.layers[0]).class_name = "ArraysCache";
  const auto loaded = Image::lend(*testing::encode(block), Source::kPending);
  EXPECT_EQ(std::get<NState>(loaded.layers[0]).class_name, "ArraysCache");
}

TEST(Dtypes, KeepEveryBitPatternOf16Bits) {
  testing::proves("ENC-02", "ENC-03", "ENC-04");
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kI16, DType::kU16}) {
    std::vector<std::byte> patterns(131072);
    for (uint32_t i = 0; i < 65536; ++i) store_le<uint16_t>(&patterns[2 * i], i);
    TestBlock block = testing::blk(1);
    const Tensor all = *tensor_from_bytes(patterns, dtype, {256, 256});
    block.input.layers[0] = make_pair_state(all, all);
    const auto decoded = *testing::decode((*testing::encode(block))->bytes());
    EXPECT_EQ(difference(block.input, Image::lend(decoded, Source::kDisk)), "");
  }
}

TEST(StridedSource, IsStoredWithoutTheRestOfItsAllocation) {
  testing::proves("ENC-05", "ENC-07");
  std::vector<std::byte> base(4 * 256 * 64 * 2, std::byte{0xee});
  TensorView view{DType::kF16, {1, 4, 3, 64}, {4 * 256 * 128, 256 * 128, 128, 2}, base.data(), {}};
  for (size_t head = 0; head < 4; ++head) {
    for (size_t i = 0; i < 3 * 128; ++i) {
      base[head * 256 * 128 + i] = static_cast<std::byte>(i % 200);
    }
  }
  TestBlock block = testing::blk(1);
  block.input.layers[0] = make_pair_state(*as_tensor(view), *as_tensor(view));
  const auto image = *testing::encode(block);
  const uint64_t data_at = *header_bytes(image->bytes().first(8), image->file_bytes());
  EXPECT_EQ(image->file_bytes(), data_at + 3072);
  for (const std::byte b : image->bytes().subspan(data_at)) ASSERT_NE(b, std::byte{0xee});
  EXPECT_EQ(difference(block.input, Image::lend(image, Source::kPending)), "");
}

}  // namespace
}  // namespace kvkeep
