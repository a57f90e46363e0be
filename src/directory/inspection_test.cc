#include "directory/inspection.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "testing/seed_block.h"
#include "testing/status_matchers.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using testing::blk;
using testing::is_ok;
using testing::TestBlock;

class InspectionTest : public ::testing::Test {
 protected:
  InspectionTest() { store_.open(); }
  Result<BlockInspection> look(const BlockHash& hash) {
    return inspect(*store_.disk, {block_path(hash), "/store/x", hash}, {});
  }
  BlockInspection look(const TestBlock& block) {
    auto found = look(block.hash);
    EXPECT_THAT(found, is_ok());
    return *std::move(found);
  }
  void flip(const TestBlock& block, size_t byte) {
    std::string bytes = *store_.disk->read_all(store_.path(block));
    bytes[byte] = static_cast<char>(bytes[byte] ^ 1);
    store_.disk->write_all(store_.path(block), bytes);
  }
  testing::TestStore store_;
};

TEST_F(InspectionTest, ABlockIsShownWhole) {
  store_.save_and_write(blk(1));
  const BlockInspection one = look(blk(1));
  EXPECT_TRUE(one.verdict.ok());
  EXPECT_EQ(one.digest, DigestState::kOk);
  EXPECT_EQ(one.record.state, BlockState::kOk);
  ASSERT_EQ(one.layers.size(), 1u);
  EXPECT_EQ(one.layers[0].kind, "pair");
  EXPECT_EQ(one.layers[0].type, "KVCache");
  ASSERT_EQ(one.layers[0].tensors.size(), 2u);
  EXPECT_EQ(one.layers[0].tensors[1].place, "layer 0, element 1");
  EXPECT_EQ(one.layers[0].tensors[1].dtype, DType::kF16);
  EXPECT_EQ(one.layers[0].tensors[1].shape, (Shape{1, 4, 64, 64}));
  EXPECT_EQ(one.layers[0].bytes, 2u * 2 * 4 * 64 * 64);
  EXPECT_EQ(one.metadata.front().first, "omlx_cache_format_version");
  EXPECT_EQ(one.metadata.back().first, "kvkeep_xxh3");
}

TEST_F(InspectionTest, EveryKindOfBlockHasItsLayers) {
  for (const TestBlock& block : testing::all_kinds()) {
    if (block.identity) continue;  // For another cache.
    store_.save_and_write(block);
    const BlockInspection one = look(block);
    EXPECT_TRUE(one.verdict.ok()) << block.name << ": " << one.verdict.to_string();
    uint64_t tensors = 0;
    for (const LayerRow& layer : one.layers) {
      const LayerState& state = block.input.layers[layer.layer];
      if (std::holds_alternative<CacheList>(state)) {
        EXPECT_EQ(layer.kind, "cache_list") << block.name;
      }
      if (std::holds_alternative<TurboQuantState>(state)) {
        EXPECT_EQ(layer.kind, "turboquant") << block.name;
      }
      if (const auto* nstate = std::get_if<NState>(&state)) {
        EXPECT_EQ(layer.kind, is_pair(*nstate) ? "pair" : "nstate") << block.name;
      }
      tensors += layer.tensors.size();
    }
    EXPECT_TRUE(tensors > 0 || one.layers.empty()) << block.name;
    EXPECT_FALSE(nlohmann::json::parse(to_json(one)).empty()) << block.name;
  }
}

TEST_F(InspectionTest, AFlippedTensorByteShowsInDigestAndVerdict) {
  store_.save_and_write(blk(1));
  flip(blk(1), store_.file_bytes(blk(1)) - 1);
  const BlockInspection one = look(blk(1));
  EXPECT_EQ(one.record.state, BlockState::kOk);
  EXPECT_EQ(one.digest, DigestState::kWrong);
  EXPECT_EQ(one.verdict.code(), Code::kDataLoss);
  EXPECT_EQ(one.layers.size(), 1u);
  const auto json = nlohmann::json::parse(to_json(one));
  EXPECT_EQ(json["digest"], "wrong");
  EXPECT_EQ(json["verdict"], "damaged");
}

TEST_F(InspectionTest, AHeaderThatMakesNoSenseIsStillAnAnswer) {
  store_.save_and_write(blk(1));
  flip(blk(1), 8);
  const BlockInspection one = look(blk(1));
  EXPECT_EQ(one.record.state, BlockState::kUnreadable);
  EXPECT_EQ(one.digest, DigestState::kUnknown);
  EXPECT_EQ(one.verdict.code(), Code::kDataLoss);
  EXPECT_TRUE(one.layers.empty());
}

TEST_F(InspectionTest, AFileOfAnotherBlockIsAMismatch) {
  store_.save_and_write(blk(1));
  store_.disk->write_all(store_.path(blk(2)), *store_.disk->read_all(store_.path(blk(1))));
  EXPECT_EQ(look(blk(2)).record.state, BlockState::kMismatch);
  EXPECT_EQ(look(blk(2)).verdict.code(), Code::kDataLoss);
}

TEST_F(InspectionTest, AFileOfTheSeedHasNoDigest) {
  store_.disk->write_all(block_path(testing::seed_key()), testing::seed_bytes());
  const auto one = look(testing::seed_key());
  ASSERT_THAT(one, is_ok());
  EXPECT_EQ(one->digest, DigestState::kMissing);
  EXPECT_TRUE(one->verdict.ok());
  EXPECT_EQ(one->layers.size(), 2u);
}

TEST_F(InspectionTest, WhatIsNotThereOrNoBlockIsAnError) {
  EXPECT_EQ(look(blk(1).hash).status().code(), Code::kNotFound);
  store_.disk->write_all("notes", "nonsense");
  EXPECT_EQ(inspect(*store_.disk, {"notes", "/store/notes", {}}, {}).status().code(),
            Code::kDataLoss);
}

}  // namespace
}  // namespace kvkeep
