#include "kvkeep/layer_cut.h"

#include <gtest/gtest.h>

#include "testing/block_builder.h"

namespace kvkeep {
namespace {

using testing::payload;

Element tensor(Shape shape, uint64_t position = 0) {
  return {payload(DType::kF16, std::move(shape), 1, position)};
}

LayerState pair(uint64_t tokens) {
  return make_pair_state(payload(DType::kF16, {1, 2, tokens, 4}, 1),
                         payload(DType::kF16, {1, 2, tokens, 4}, 1, 512));
}

// As QuantizedKVCache has it: data, scales and biases of keys and of values.
LayerState quantized(uint64_t tokens) {
  const auto triple = [&](uint64_t at) {
    return Element{ElementTuple{{{payload(DType::kU32, {1, 2, tokens, 8}, 1, at)},
                                 tensor({1, 2, tokens, 2}, at + 64),
                                 tensor({1, 2, tokens, 2}, at + 96)}}};
  };
  return NState{"QuantizedKVCache", {triple(0), triple(2048)}};
}

LayerState turboquant(uint64_t tokens) {
  const auto record = [&](uint64_t at) {
    return PackedRecord{"TurboQuantMSEState",
                        {{"norms", payload(DType::kF16, {1, 2, tokens}, 1, at)},
                         {"indices", payload(DType::kU32, {1, 2, tokens, 3}, 1, at + 64)}}};
  };
  return TurboQuantState{record(0), record(4096)};
}

LayerState cache_list(uint64_t tokens) {
  return CacheList{{std::get<NState>(pair(tokens)), std::get<NState>(pair(tokens))}};
}

// What a block of these tokens holds after it was stored and loaded: rows without strides.
LoadedBlock stored(const LayerState& layer, uint64_t begin, uint64_t end) {
  testing::TestBlock block = testing::blk(1);
  block.input.layers = {*cut_layer(layer, begin, end)};
  block.input.layer_types.reset();
  block.input.meta_states.reset();
  block.input.token_count = static_cast<uint32_t>(end - begin);
  BufferPool::Options options;
  options.limit_bytes = 1 << 22;
  const auto image =
      encode_block(block.hash, block.input, testing::test_context(Profile::kExtended, block),
                   *BufferPool::create(options));
  EXPECT_TRUE(image.ok()) << image.status().to_string();
  return Image::lend(*image, Source::kHot);
}

std::vector<std::byte> joined_bytes(const JoinedTensor& joined) {
  std::vector<std::byte> bytes(joined.bytes);
  copy_joined(joined, bytes);
  return bytes;
}

// Cut into blocks of 5 and joined again: every tensor is what it was, up to `tokens`.
void expect_round_trip(const LayerState& layer, uint64_t all, uint64_t tokens) {
  std::vector<LoadedBlock> blocks;
  for (uint64_t begin = 0; begin < all; begin += 5) {
    blocks.push_back(stored(layer, begin, std::min(begin + 5, all)));
  }
  const LoadedBlock whole = stored(layer, 0, tokens);
  const auto joined = join_layer(blocks, 0, tokens);
  const auto expected = join_layer({&whole, 1}, 0, tokens);
  ASSERT_TRUE(joined.ok()) << joined.status().to_string();
  ASSERT_EQ(joined->size(), expected->size());
  for (size_t i = 0; i < joined->size(); ++i) {
    EXPECT_EQ((*joined)[i].shape, (*expected)[i].shape);
    EXPECT_EQ(joined_bytes((*joined)[i]), joined_bytes((*expected)[i])) << "tensor " << i;
  }
}

TEST(LayerCut, EveryKindThatCanBeCutComesBackWhole) {
  for (const LayerState& layer : {pair(17), quantized(17), turboquant(17), cache_list(17)}) {
    EXPECT_EQ(tokens_in(layer), 17u);
    expect_round_trip(layer, 17, 17);
    expect_round_trip(layer, 17, 16);  // All but the last token.
    expect_round_trip(layer, 17, 3);
  }
}

TEST(LayerCut, CutsTensorsThatHaveStridesOfTheirOwn) {
  LayerState layer = pair(8);
  auto& keys = std::get<Tensor>(std::get<NState>(layer).elements[0].v);
  const LoadedBlock plain = stored(layer, 2, 5);
  keys.byte_strides = {128, 64, 8, 2};  // As they are, but said.
  const LoadedBlock said = stored(layer, 2, 5);
  EXPECT_EQ(joined_bytes((*join_layer({&plain, 1}, 0, 3))[0]),
            joined_bytes((*join_layer({&said, 1}, 0, 3))[0]));
}

TEST(LayerCut, KnowsWhatCanBeCut) {
  for (const char* type : {"KVCache", "QuantizedKVCache", "BatchKVCache", "MiniMaxM3KVCache"}) {
    EXPECT_TRUE(is_cuttable(type, pair(4))) << type;
  }
  for (const char* type : {"RotatingKVCache", "ArraysCache", "ChunkedKVCache", "Mystery", ""}) {
    EXPECT_FALSE(is_cuttable(type, pair(4))) << type;
  }
  EXPECT_TRUE(is_cuttable("TurboQuantKVCache", turboquant(4)));
  EXPECT_TRUE(is_cuttable("CacheList", cache_list(4)));
  EXPECT_FALSE(is_cuttable("CacheList", CacheList{{NState{"ArraysCache", {tensor({1, 4})}}}}));
  NState window = std::get<NState>(pair(4));
  window.class_name = "RotatingKVCache";
  EXPECT_FALSE(is_cuttable("CacheList", CacheList{{std::get<NState>(pair(4)), window}}));
}

TEST(LayerCut, RefusesTokensThatTheLayerDoesNotHold) {
  EXPECT_EQ(cut_layer(pair(4), 3, 5).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(cut_layer(pair(4), 3, 2).status().code(), Code::kInvalidArgument);
  const LayerState uneven =
      make_pair_state(payload(DType::kF16, {1, 2, 4, 4}, 1), payload(DType::kF16, {1, 2, 5, 4}, 1));
  EXPECT_EQ(tokens_in(uneven), std::nullopt);
  EXPECT_EQ(cut_layer(uneven, 0, 4).status().code(), Code::kInvalidArgument);
}

TEST(LayerCut, BlocksThatDoNotFitTogetherAreNotJoined) {
  const LoadedBlock four = stored(pair(4), 0, 4);
  const LoadedBlock other_dtype = stored(
      make_pair_state(payload(DType::kF32, {1, 2, 4, 4}, 1), payload(DType::kF32, {1, 2, 4, 4}, 1)),
      0, 4);
  const LoadedBlock other_heads = stored(
      make_pair_state(payload(DType::kF16, {1, 3, 4, 4}, 1), payload(DType::kF16, {1, 3, 4, 4}, 1)),
      0, 4);
  for (const LoadedBlock& second : {other_dtype, other_heads, stored(quantized(4), 0, 4)}) {
    const std::vector<LoadedBlock> blocks = {four, second};
    EXPECT_EQ(join_layer(blocks, 0, 8).status().code(), Code::kFailedPrecondition);
  }
  EXPECT_EQ(join_layer({&four, 1}, 0, 5).status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(join_layer({&four, 1}, 1, 4).status().code(), Code::kFailedPrecondition);
}

TEST(LayerCut, PlaceholdersAreTold) {
  EXPECT_TRUE(is_placeholder(placeholder_layer()));
  EXPECT_FALSE(is_placeholder(pair(1)));
  EXPECT_FALSE(is_placeholder(turboquant(1)));
}

}  // namespace
}  // namespace kvkeep
