#include "kvkeep/block_pool.h"

#include <gtest/gtest.h>

#include "testing/block_builder.h"
#include "testing/proves.h"

namespace kvkeep {
namespace {

using testing::key_of;
using testing::proves;

PoolKey key(uint64_t k, uint64_t generation = 0) { return {key_of(k), 16, generation}; }

TEST(BlockPool, HandsOutEachBlockOnceUntilItIsFull) {
  BlockPool pool(16, 2);
  const auto a = pool.allocate();
  const auto b = pool.allocate();
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_NE(*a, *b);
  const auto c = pool.allocate();
  EXPECT_EQ(c.status().code(), Code::kResourceExhausted);
  EXPECT_NE(c.status().message().find("all of its 2 blocks"), std::string::npos);
  EXPECT_TRUE(pool.unref(*a));
  EXPECT_EQ(*pool.allocate(), *a);
}

TEST(BlockPool, ReferencesNeverGoBelowZero) {
  BlockPool pool(16, 2);
  const BlockId id = *pool.allocate();
  EXPECT_TRUE(pool.ref(id));
  EXPECT_EQ(pool.get(id)->ref_count, 2u);
  EXPECT_TRUE(pool.unref(id));
  EXPECT_TRUE(pool.unref(id));
  EXPECT_FALSE(pool.unref(id));
  EXPECT_EQ(pool.get(id)->ref_count, 0u);
  EXPECT_FALSE(pool.ref(id));  // Nobody knows what it stands for any more.
  EXPECT_FALSE(pool.unref(77));
  EXPECT_FALSE(pool.get(77).has_value());
  pool.release(std::vector<BlockId>{id, 77});
  EXPECT_EQ(pool.get(id)->ref_count, 0u);
}

TEST(BlockPool, AKeyStaysKnownUntilItsBlockIsNeeded) {
  BlockPool pool(16, 2);
  const BlockId a = *pool.allocate();
  ASSERT_TRUE(pool.register_hash(a, key_of(1), 5));
  EXPECT_TRUE(pool.unref(a));
  EXPECT_EQ(pool.find(key_of(1)), a);
  EXPECT_EQ(pool.get(a)->generation, 5u);
  EXPECT_NE(*pool.allocate(), a);  // One that is free comes first.
  EXPECT_EQ(pool.find(key_of(1)), a);
  EXPECT_EQ(*pool.allocate(), a);
  EXPECT_FALSE(pool.find(key_of(1)).has_value());
  EXPECT_EQ(pool.get(a)->hash, std::nullopt);
  EXPECT_EQ(pool.stats().recycled_blocks, 1u);
}

TEST(BlockPool, AHeldBlockIsNeverRecycled) {
  BlockPool pool(16, 3);
  const std::vector<BlockId> held = pool.acquire(std::vector<PoolKey>{key(1)});
  ASSERT_EQ(held.size(), 1u);
  for (uint64_t k = 10; k < 20; ++k) {
    pool.release(pool.acquire(std::vector<PoolKey>{key(k), key(k + 100)}));
  }
  EXPECT_EQ(pool.find(key_of(1)), held[0]);
  EXPECT_EQ(pool.get(held[0])->ref_count, 1u);
}

TEST(BlockPool, AcquiringCountsAReferenceAndTakesTheNewGeneration) {
  proves("RUL-25");
  BlockPool pool(16, 4);
  const std::vector<BlockId> first = pool.acquire(std::vector<PoolKey>{key(1, 3), key(2, 4)});
  const std::vector<BlockId> second = pool.acquire(std::vector<PoolKey>{key(1, 9)});
  EXPECT_EQ(second[0], first[0]);
  EXPECT_EQ(pool.get(first[0])->ref_count, 2u);
  EXPECT_EQ(pool.get(first[0])->generation, 9u);
  EXPECT_EQ(pool.get(first[1])->generation, 4u);
  EXPECT_EQ(pool.get(first[1])->token_count, 16u);
  EXPECT_EQ(pool.stats().held_blocks, 2u);
  EXPECT_EQ(pool.stats().shared_blocks, 1u);
}

TEST(BlockPool, AcquiringEndsWhereThePoolIsFull) {
  BlockPool pool(16, 2);
  const auto ids = pool.acquire(std::vector<PoolKey>{key(1), key(2), key(3)});
  EXPECT_EQ(ids.size(), 2u);
  EXPECT_FALSE(pool.find(key_of(3)).has_value());
}

TEST(BlockPool, AChainIsRecycledFromItsEnd) {
  BlockPool pool(16, 3);
  pool.release(pool.acquire(std::vector<PoolKey>{key(1), key(2), key(3)}));
  static_cast<void>(*pool.allocate());
  EXPECT_FALSE(pool.find(key_of(3)).has_value());
  EXPECT_TRUE(pool.find(key_of(2)).has_value());
  static_cast<void>(*pool.allocate());
  EXPECT_FALSE(pool.find(key_of(2)).has_value());
  EXPECT_TRUE(pool.find(key_of(1)).has_value());
}

TEST(BlockPool, OneKeyStandsForOneBlock) {
  BlockPool pool(16, 4);
  const BlockId a = *pool.allocate();
  const BlockId b = *pool.allocate();
  ASSERT_TRUE(pool.register_hash(a, key_of(1)));
  ASSERT_TRUE(pool.register_hash(b, key_of(1)));
  EXPECT_EQ(pool.find(key_of(1)), b);
  EXPECT_EQ(pool.get(a)->hash, std::nullopt);
  ASSERT_TRUE(pool.register_hash(b, key_of(2)));
  EXPECT_FALSE(pool.find(key_of(1)).has_value());
  pool.forget(key_of(2));
  EXPECT_FALSE(pool.find(key_of(2)).has_value());
  EXPECT_EQ(pool.get(b)->ref_count, 1u);
  EXPECT_FALSE(pool.register_hash(99, key_of(3)));
}

}  // namespace
}  // namespace kvkeep
