// Blocks through the whole of a cache: what a file holds, and what a load makes of it.
#include <gtest/gtest.h>

#include "codec/safetensors_header.h"
#include "testing/proves.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using testing::blk;
using testing::payload;
using testing::proves;
using testing::TestBlock;
using testing::TestStore;

class RoundTripTest : public ::testing::Test {
 protected:
  RoundTripTest() { store_.open(); }

  static SafetensorsHeader header_of(const std::string& file) {
    const uint64_t length = load_le<uint64_t>(file.data());
    auto header = SafetensorsHeader::parse(std::string_view(file).substr(8, length),
                                           file.size() - 8 - length);
    EXPECT_TRUE(header.ok()) << header.status().to_string();
    return *std::move(header);
  }
  TestStore store_;
};

TestBlock with_layers(uint64_t k, std::vector<LayerState> layers) {
  TestBlock block = blk(k);
  block.input.layer_types.emplace(layers.size(), "KVCache");
  block.input.meta_states.emplace(layers.size(), MetaState{MetaValue{int64_t{64}}});
  block.input.layers = std::move(layers);
  return block;
}

TEST_F(RoundTripTest, FourLayersReturnWithTheirShapes) {
  proves("LOAD-01", "SAVE-01");
  const Shape shape = {1, 8, 64, 64};
  std::vector<LayerState> layers;
  for (uint64_t i = 0; i < 4; ++i) {
    layers.emplace_back(make_pair_state(payload(DType::kF16, shape, 2 * i),
                                        payload(DType::kF16, shape, 2 * i + 1)));
  }
  const TestBlock block = with_layers(1, std::move(layers));
  ASSERT_EQ(store_.save(block), "queued");
  EXPECT_TRUE(store_.cache->has_block(block.hash));
  store_.executor->run_all();
  const auto loaded = store_.cache->load_block(block.hash);
  ASSERT_TRUE(loaded.ok());
  ASSERT_EQ(loaded->size(), 4u);
  for (uint64_t i = 0; i < 8; ++i) {
    const auto& pair = std::get<NState>(loaded->at(i / 2));
    const auto& tensor = std::get<Tensor>(pair.elements.at(i % 2).v);
    EXPECT_EQ(tensor.shape, shape);
    EXPECT_TRUE(testing::is_payload(tensor, i));
  }
}

TEST_F(RoundTripTest, FiveBlocksLoadOneAfterAnother) {
  proves("LOAD-09");
  for (uint64_t k = 0; k < 5; ++k) store_.save_and_write(blk(k));
  for (uint64_t k = 0; k < 5; ++k) {
    EXPECT_EQ(store_.load(blk(k)), "disk");
    EXPECT_EQ(store_.cache->load_block(blk(k).hash)->size(), 1u);
  }
  EXPECT_EQ(store_.executor->pending(), 0u);
}

TEST_F(RoundTripTest, TypesAndMetaStatesComeFromTheFile) {
  proves("LOAD-11");
  store_.save_and_write(blk(1));
  store_.restart();
  const auto loaded = store_.cache->load_block_with_info(blk(1).hash);
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded->info.layer_types, blk(1).input.layer_types);
  ASSERT_TRUE(loaded->info.meta_states.has_value());
  EXPECT_EQ(std::get<int64_t>(loaded->info.meta_states->at(0).at(0).v), 64);
}

TEST_F(RoundTripTest, TheFileNamesItsTensorsAndItsBlock) {
  proves("SAVE-13", "SAVE-08");
  store_.save_and_write(blk(1));
  const std::string file = *store_.disk->read_all(store_.path(blk(1)));
  SafetensorsHeader header = header_of(file);
  ASSERT_NE(header.find("layer_0_state_0"), nullptr);
  ASSERT_NE(header.find("layer_0_state_1"), nullptr);
  EXPECT_EQ(*header.value("layer_0_state_count"), "2");
  EXPECT_EQ(*header.value("block_hash"), blk(1).hash.to_hex());
  EXPECT_EQ(*header.value("omlx_cache_format_version"), "3");
}

TEST_F(RoundTripTest, AWrittenBlockCountsAsItsFile) {
  proves("SAVE-25");
  for (const uint64_t bytes : {2000, 3001, 40'007}) {
    const TestBlock block = testing::sized(bytes, bytes);
    const uint64_t before = store_.block_bytes();
    store_.save_and_write(block);
    EXPECT_EQ(store_.file_bytes(block), bytes);
    EXPECT_EQ(store_.block_bytes() - before, bytes);
  }
}

TEST_F(RoundTripTest, StatesOfNoAndOfOneElementAreValid) {
  proves("RUL-23");
  const TestBlock none = with_layers(1, {NState{"Empty", {}}});
  const TestBlock one = with_layers(2, {NState{"One", {Element{payload(DType::kF32, {2}, 2)}}}});
  for (const TestBlock& block : {none, one}) {
    store_.save_and_write(block);
    EXPECT_EQ(store_.load(block), "disk");
    store_.restart();
    EXPECT_EQ(store_.load(block), "disk");
  }
}

TEST_F(RoundTripTest, AStateThatCannotBeStoredIsRefusedAndCounted) {
  proves("SAVE-23", "DEF-74");
  const TurboQuantState unknown{{"NoSuchState", {}}, {"NoSuchState", {}}};
  const TurboQuantState composite{{"TurboQuantSplitState", {}}, {"TurboQuantSplitState", {}}};
  TestBlock cut = with_layers(3, {make_pair_state(payload(DType::kF32, {2}, 1), {})});
  std::get<Tensor>(std::get<NState>(cut.input.layers[0]).elements[1].v).shape = {2};
  store_.files->clear_record();
  EXPECT_EQ(store_.save(with_layers(1, {unknown})), "unsupported");
  EXPECT_EQ(store_.save(with_layers(2, {composite})), "unsupported");
  const Status refused = store_.cache->save_block(cut.hash, cut.input).status();
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_NE(refused.message().find("layer 0"), std::string::npos) << refused.message();
  EXPECT_EQ(store_.cache->stats().errors, 3u);
  EXPECT_EQ(store_.cache->tracked_count(), 0u);
  EXPECT_TRUE(store_.files->calls().empty());
}

}  // namespace
}  // namespace kvkeep
