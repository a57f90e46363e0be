// The cache by the generic names: fetch, store, evict.
#include <gtest/gtest.h>

#include <type_traits>

#include "testing/proves.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using testing::blk;
using testing::proves;
using testing::TestStore;

class GenericInterfaceTest : public ::testing::Test {
 protected:
  GenericInterfaceTest() {
    store_.options.max_size_bytes = 1ull << 30;
    store_.open();
  }
  TieredBlockCache& cache() { return *store_.cache; }
  TestStore store_;
};

TEST_F(GenericInterfaceTest, FetchTellsAHitFromAMiss) {
  proves("API-01");
  const auto [nothing, missed] = cache().fetch(blk(1).hash);
  EXPECT_FALSE(nothing.has_value() || missed);
  store_.save_and_write(blk(1));
  const auto [layers, hit] = cache().fetch(blk(1).hash);
  ASSERT_TRUE(layers.has_value() && hit);
  const auto& pair = std::get<NState>(layers->at(0));
  EXPECT_TRUE(testing::is_payload(std::get<Tensor>(pair.elements[0].v), 1));
  EXPECT_EQ(cache().stats().misses, 1u);
  EXPECT_EQ(cache().stats().load_hits, 1u);
}

TEST_F(GenericInterfaceTest, EvictIsDelete) {
  proves("API-02", "DEL-01");
  EXPECT_FALSE(*cache().evict(blk(1).hash));
  EXPECT_FALSE(*cache().delete_block(blk(1).hash));
  store_.save_and_write(blk(1));
  EXPECT_TRUE(*cache().evict(blk(1).hash));
  EXPECT_EQ(store_.load(blk(1)), "deleted");
  EXPECT_FALSE(store_.disk->read_all(store_.path(blk(1))).has_value());
  EXPECT_FALSE(*cache().evict(blk(1).hash));
}

TEST_F(GenericInterfaceTest, SizeCountsWhatIsServed) {
  proves("API-03");
  EXPECT_EQ(cache().size(), 0u);
  store_.save_and_write(blk(1));
  store_.save_and_write(blk(2));
  EXPECT_EQ(cache().size(), 2u);
  EXPECT_TRUE(cache().forget_block(blk(1).hash));
  EXPECT_EQ(cache().size(), 1u);
}

TEST_F(GenericInterfaceTest, MaxSizeIsTheLimitWhereTheDiskIsAmple) {
  proves("API-04");
  EXPECT_EQ(cache().max_size(), 1ull << 30);
}

TEST_F(GenericInterfaceTest, StoreIsSave) {
  proves("API-05");
  EXPECT_TRUE(cache().store(blk(1).hash, blk(1).input).ok());
  EXPECT_EQ(store_.load(blk(1)), "pending");
  EXPECT_TRUE(cache().store(blk(1).hash, blk(1).input).ok()) << "present";
  BlockInput named = blk(2).input;
  named.token_count = 7;
  named.model_name = "n";
  EXPECT_TRUE(cache().store(blk(2).hash, named).ok());
  const auto loaded = cache().load_block_with_info(blk(2).hash);
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded->info.token_count, 7u);
  EXPECT_EQ(loaded->info.model_name, "n");
  BlockInput bare;
  bare.layers = blk(3).input.layers;
  const Status refused = cache().save_block(blk(3).hash, bare).status();
  EXPECT_EQ(cache().store(blk(3).hash, bare).to_string(), refused.to_string());
}

TEST_F(GenericInterfaceTest, OnlyByteStringsAreKeys) {
  proves("API-06");
  static_assert(!std::is_convertible_v<int, BlockHash>);
  static_assert(!std::is_convertible_v<std::string, BlockHash>);
  EXPECT_FALSE(BlockHash::from_bytes({}).ok());
}

}  // namespace
}  // namespace kvkeep
