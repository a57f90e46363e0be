// What encode_block() refuses, with which code, and what the message names.

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "codec/block_codec.h"
#include "codec/safetensors_header.h"
#include "hash/signature.h"
#include "testing/block_compare.h"
#include "testing/proves.h"
#include "testing/test_images.h"

namespace kvkeep {
namespace {

using testing::TestBlock;

Tensor small(DType dtype = DType::kF16, Shape shape = {2, 3}) {
  return testing::payload(dtype, std::move(shape), 1);
}

// The element of layer 1 that a case replaces.
Element& target(TestBlock& block) { return std::get<NState>(block.input.layers[1]).elements[1]; }

TestBlock two_layers() {
  TestBlock block = testing::blk(1);
  block.input.layers.clear();
  for (int i = 0; i < 2; ++i) block.input.layers.emplace_back(make_pair_state(small(), small()));
  block.input.layer_types = {{"KVCache", "KVCache"}};
  block.input.meta_states = {{MetaState{}, MetaState{}}};
  return block;
}

struct Case {
  std::string name;
  std::function<void(TestBlock&)> change;
  Code code;
  std::string message;  // Part of it.
};

void expect_refusals(const std::vector<Case>& cases, Profile profile) {
  for (const Case& c : cases) {
    TestBlock block = two_layers();
    c.change(block);
    const Status status = testing::encode(block, profile).status();
    EXPECT_EQ(status.code(), c.code) << c.name << ": " << status.to_string();
    EXPECT_NE(status.message().find(c.message), std::string::npos)
        << c.name << ": " << status.to_string();
  }
}

void set_tensor(TestBlock& block, const std::function<void(Tensor&)>& change) {
  change(std::get<Tensor>(target(block).v));
}

TEST(Refusal, NamesLayerAndElementOfABadTensor) {
  testing::proves("ENC-10", "SAVE-24");
  const auto bad = [](std::function<void(Tensor&)> change) {
    return [change](TestBlock& block) { set_tensor(block, change); };
  };
  const std::string place = "layer 1, element 1";
  const auto max = std::numeric_limits<uint64_t>::max();
  expect_refusals(
      {{"short", bad([](Tensor& t) { t.data.view = t.data.view.first(11); }),
        Code::kInvalidArgument, place},
       {"long", bad([](Tensor& t) {
          t.shape = {2, 2};
        }),
        Code::kInvalidArgument, place},
       {"overflow", bad([](Tensor& t) {
          t.shape = {1ull << 32, 1ull << 32};
        }),
        Code::kInvalidArgument, place},
       {"huge axis", bad([=](Tensor& t) {
          t.shape = {max, 0};
        }),
        Code::kInvalidArgument, place},
       {"no data", bad([](Tensor& t) {
          t.data.view = {static_cast<std::byte*>(nullptr), 12};
        }),
        Code::kInvalidArgument, place},
       {"strides", bad([](Tensor& t) { t.byte_strides = {2}; }), Code::kInvalidArgument, place},
       {"far strides", bad([](Tensor& t) {
          t.byte_strides = {1000, 2};
        }),
        Code::kInvalidArgument, place},
       {"endless strides", bad([](Tensor& t) {
          t.byte_strides = {std::numeric_limits<int64_t>::min(), 2};
        }),
        Code::kInvalidArgument, place},
       {"dtype", bad([](Tensor& t) { t.dtype = static_cast<DType>(200); }), Code::kUnimplemented,
        place},
       {"axes", bad([](Tensor& t) { t = small(DType::kF32, Shape(17, 0)); }),
        Code::kInvalidArgument, place}},
      Profile::kExtended);
}

TEST(Refusal, CountsAndLengthsAreNamed) {
  expect_refusals(
      {{"types", [](TestBlock& b) { b.input.layer_types->pop_back(); }, Code::kInvalidArgument,
        "1 layer types for 2 layers"},
       {"meta states", [](TestBlock& b) { b.input.meta_states->emplace_back(); },
        Code::kInvalidArgument, "3 meta states for 2 layers"},
       {"tokens", [](TestBlock& b) { b.input.token_count = 0; }, Code::kInvalidArgument, "tokens"},
       {"layers", [](TestBlock& b) { b.input.layers.clear(); }, Code::kInvalidArgument, "layers"},
       {"elements",
        [](TestBlock& b) {
          std::get<NState>(b.input.layers[1]).elements.assign(1'000'001, Element{Null{}});
        },
        Code::kInvalidArgument, "layer 1: 1000001 elements"},
       {"sub-states",
        [](TestBlock& b) { b.input.layers[1] = CacheList{std::vector<NState>(1'000'001)}; },
        Code::kInvalidArgument, "layer 1: 1000001 sub-states"}},
      Profile::kExtended);
}

TEST(Refusal, TextsMustBeUtf8AndNumbersFinite) {
  const auto meta = [](MetaValue value) {
    return [value](TestBlock& b) { (*b.input.meta_states)[1] = {value}; };
  };
  MetaValue deep;
  for (int i = 0; i < 33; ++i) deep = MetaValue{std::vector<MetaValue>{deep}};
  expect_refusals(
      {{"model", [](TestBlock& b) { b.input.model_name = "\xff"; }, Code::kInvalidArgument,
        "model"},
       {"type",
        [](TestBlock& b) {
          b.input.layer_types = {{"a", "\xc3"}};
        },
        Code::kInvalidArgument, "layer 1"},
       {"class",
        [](TestBlock& b) { std::get<NState>(b.input.layers[1]).class_name = "\xed\xa0\x80"; },
        Code::kInvalidArgument, "layer 1"},
       {"nested class",
        [](TestBlock& b) {
          target(b).v = NState{"\x80", {}};
        },
        Code::kInvalidArgument, "layer 1, element 1"},
       {"meta text", meta({std::string("\xff")}), Code::kInvalidArgument, "layer 1"},
       {"meta NaN", meta({std::numeric_limits<double>::quiet_NaN()}), Code::kInvalidArgument,
        "layer 1"},
       {"meta inf", meta({-std::numeric_limits<double>::infinity()}), Code::kInvalidArgument,
        "layer 1"},
       {"meta nesting", meta(deep), Code::kInvalidArgument, "layer 1"}},
      Profile::kExtended);
}

TEST(Refusal, TurboQuantRecordsMustBeOfAKnownFlatType) {
  testing::proves("TQ-13", "DEF-46");
  const auto record = [](PackedRecord key) {
    return [key](TestBlock& b) {
      PackedRecord value{"TurboQuantMSEState", {{"norms", small()}, {"indices", small()}}};
      b.input.layers[1] = TurboQuantState{key, value};
    };
  };
  expect_refusals(
      {{"unknown", record({"Other", {}}), Code::kUnimplemented, "layer 1"},
       {"polar", record({"TurboQuantPolarState", {{"radii", small()}, {"level_indices", small()}}}),
        Code::kUnimplemented, "TurboQuantPolarState"},
       {"polar prod", record({"TurboQuantPolarProdState", {}}), Code::kUnimplemented, "layer 1"},
       {"split", record({"TurboQuantSplitState", {{"low", small()}, {"high", small()}}}),
        Code::kUnimplemented, "layer 1"},
       {"missing field", record({"TurboQuantMSEState", {{"norms", small()}}}),
        Code::kInvalidArgument, "norms,indices"},
       {"order", record({"TurboQuantMSEState", {{"indices", small()}, {"norms", small()}}}),
        Code::kInvalidArgument, "layer 1"},
       {"bad tensor",
        record({"TurboQuantMSEState",
                {{"norms", small()}, {"indices", Tensor{DType::kF32, {9}, {}, {}}}}}),
        Code::kInvalidArgument, "layer 1, key field indices"},
       {"type CacheList",
        [&](TestBlock& b) {
          record({"TurboQuantMSEState", {{"norms", small()}, {"indices", small()}}})(b);
          b.input.layer_types = {{"KVCache", "CacheList"}};
        },
        Code::kInvalidArgument, "layer 1"}},
      Profile::kExtended);
}

TEST(Refusal, SeedExactHasNoPlaceFor8BitFloatsAndIdentities) {
  testing::proves("RUL-22");
  expect_refusals({{"float8", [](TestBlock& b) { target(b).v = small(DType::kF8E4M3); },
                    Code::kUnimplemented, "layer 1, element 1: F8_E4M3"},
                   {"empty float8", [](TestBlock& b) { target(b).v = small(DType::kF8E8M0, {0}); },
                    Code::kUnimplemented, "layer 1, element 1: F8_E8M0"}},
                  Profile::kSeedExact);
  const TestBlock block = two_layers();
  EncodeContext context = testing::test_context(Profile::kSeedExact, block);
  context.identity = std::string(64, 'a');
  EXPECT_EQ(encoded_bytes(block.hash, block.input, context).status().code(),
            Code::kInvalidArgument);
  context.profile = Profile::kExtended;
  EXPECT_TRUE(encoded_bytes(block.hash, block.input, context).ok());
  context.identity = std::string(64, 'A');
  EXPECT_EQ(encoded_bytes(block.hash, block.input, context).status().code(),
            Code::kInvalidArgument);
}

TEST(Refusal, TimeAndDepthMustBeFinite) {
  const TestBlock block = two_layers();
  EncodeContext context = testing::test_context(Profile::kSeedExact, block);
  context.created_at = std::numeric_limits<double>::infinity();
  EXPECT_EQ(encoded_bytes(block.hash, block.input, context).status().code(),
            Code::kInvalidArgument);
  context.created_at = 0;
  context.turboquant_bits = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(encoded_bytes(block.hash, block.input, context).status().code(),
            Code::kInvalidArgument);
}

TEST(Refusal, OfThePoolIsResourceExhausted) {
  BufferPool::Options options;
  options.limit_bytes = 4096;
  const TestBlock block = testing::blk(1);
  const auto image =
      encode_block(block.hash, block.input, testing::test_context(Profile::kExtended, block),
                   *BufferPool::create(options));
  EXPECT_EQ(image.status().code(), Code::kResourceExhausted);
}

// A block whose header, but for its padding, is as long as the model name wishes.
TestBlock with_header_of(size_t bytes) {
  TestBlock block = two_layers();
  block.input.model_name = "";
  const auto image = *testing::encode(block);
  const size_t now = *header_bytes(image->bytes().first(8), image->file_bytes()) - 8;
  // The name occurs in model_name and in the signature.
  block.input.model_name = std::string((bytes - now) / 2, 'm');
  return block;
}

TEST(Refusal, BeginsWhereTheReadersLimitForHeadersIs) {
  testing::proves("DEF-38");
  const TestBlock below = with_header_of(kHeaderBytesLimit - 300);
  const auto image = testing::encode(below);
  ASSERT_TRUE(image.ok()) << image.status().to_string();
  const auto decoded = testing::decode((*image)->bytes());
  ASSERT_TRUE(decoded.ok()) << decoded.status().to_string();
  EXPECT_EQ(testing::difference(below.input, Image::lend(*decoded, Source::kDisk)), "");
  const Status status = testing::encode(with_header_of(kHeaderBytesLimit + 300)).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.to_string();
}

TEST(Refusal, SparesAStateOfAMillionElements) {
  testing::proves("DEF-38");
  TestBlock block = two_layers();
  block.input.layers.resize(1);
  block.input.layer_types.reset();
  block.input.meta_states.reset();
  auto& elements = std::get<NState>(block.input.layers[0]).elements;
  elements.assign(1'000'000, Element{small(DType::kU8, {1})});
  const auto image = testing::encode(block);
  ASSERT_TRUE(image.ok()) << image.status().to_string();
  const auto decoded = testing::decode((*image)->bytes());
  ASSERT_TRUE(decoded.ok()) << decoded.status().to_string();
  const LoadedBlock loaded = Image::lend(*decoded, Source::kDisk);
  EXPECT_EQ(std::get<NState>(loaded.layers[0]).elements.size(), 1'000'000u);
}

// Depth stamping: the case's layers, the depth expected, what becomes of it.
TestBlock with_bits(std::vector<std::string> types, std::vector<MetaState> meta_states) {
  TestBlock block = two_layers();
  block.input.layer_types = std::move(types);
  block.input.meta_states = std::move(meta_states);
  return block;
}

MetaState bits(double value) {
  return {MetaValue{int64_t{8}}, MetaValue{value}, MetaValue{int64_t{0}}};
}

std::optional<double> stamped(const TestBlock& block, Profile profile,
                              std::optional<double> expected) {
  EncodeContext context = testing::test_context(profile, block);
  context.turboquant_bits = expected;
  BufferPool::Options options;
  options.limit_bytes = 1 << 20;
  const auto image = encode_block(block.hash, block.input, context, *BufferPool::create(options));
  if (!image.ok()) {
    EXPECT_EQ(image.status().code(), Code::kFailedPrecondition) << image.status().to_string();
    EXPECT_EQ(image.status().refusal(), Refusal::kRefusedBits);
    return -1;
  }
  return signature_bits((*image)->header().info.signature);
}

TEST(Depth, IsStampedOnlyOnEvidence) {
  testing::proves("DEF-55", "TQ-10");
  const TestBlock plain = two_layers();
  const TestBlock proven = with_bits({"TurboQuantKVCache", "KVCache"}, {bits(6), {}});
  const TestBlock unproven = with_bits({"TurboQuantKVCache", "KVCache"}, {{}, {}});
  EXPECT_EQ(stamped(proven, Profile::kExtended, {}), 6.0);
  EXPECT_EQ(stamped(proven, Profile::kExtended, 4.0), 6.0);
  EXPECT_EQ(stamped(plain, Profile::kExtended, 4.0), std::nullopt);
  EXPECT_EQ(stamped(unproven, Profile::kExtended, {}), std::nullopt);
  EXPECT_EQ(stamped(unproven, Profile::kExtended, 4.0), -1) << "refused";
  EXPECT_EQ(stamped(plain, Profile::kSeedExact, 4.0), 4.0) << "as the seed does";
  EXPECT_EQ(stamped(unproven, Profile::kSeedExact, 4.0), 4.0);
}

TEST(Depth, OfLayersMustAgree) {
  testing::proves("DEF-76");
  const std::vector<std::string> types = {"TurboQuantKVCache", "BatchTurboQuantKVCache"};
  EXPECT_EQ(stamped(with_bits(types, {bits(6), bits(6)}), Profile::kExtended, {}), 6.0);
  EXPECT_EQ(stamped(with_bits(types, {bits(6), bits(4)}), Profile::kExtended, {}), -1);
  EXPECT_EQ(stamped(with_bits(types, {bits(6), bits(4)}), Profile::kSeedExact, {}), -1);
}

}  // namespace
}  // namespace kvkeep
