// Preload: which blocks are brought into the hot tier, in which order, and what is counted.
#include "tier/preload.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <thread>

#include "testing/proves.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using testing::BlockedCalls;
using testing::Op;
using testing::proves;
using testing::sized;
using testing::TestBlock;
using testing::TestStore;

constexpr uint64_t kBlock = 4096;

TestBlock block(uint64_t k) { return sized(k, kBlock); }

class PreloadTest : public ::testing::Test {
 protected:
  PreloadTest() {
    store_.options.hot_max_bytes = 100 * kBlock;
    store_.open();
    for (uint64_t k = 1; k <= 8; ++k) store_.save(block(k));
    store_.restart();
  }
  void room_for(uint64_t blocks) { store_.cache->set_hot_max_bytes(blocks * kBlock); }
  size_t preload(std::initializer_list<uint64_t> ks) {
    std::vector<BlockHash> keys;
    for (const uint64_t k : ks) keys.push_back(block(k).hash);
    return store_.cache->preload(keys);
  }
  bool is_hot(uint64_t k) { return store_.cache->why(block(k).hash).source == Source::kHot; }
  CacheStats stats() { return store_.cache->stats(); }
  TestStore store_;
};

TEST_F(PreloadTest, BringsColdBlocksIntoRam) {
  proves("PRELOAD-01", "PRELOAD-12");
  for (const uint64_t k : {1, 2, 3, 4}) EXPECT_FALSE(is_hot(k));
  EXPECT_EQ(preload({1, 2, 3, 4}), 4u);
  for (const uint64_t k : {1, 2, 3, 4}) EXPECT_TRUE(is_hot(k));
  EXPECT_EQ(stats().preload_calls, 1u);
  EXPECT_EQ(stats().preload_blocks_loaded, 4u);
  EXPECT_GT(stats().preload_time_ms, 0u);
  EXPECT_EQ(stats().loads + stats().hits + stats().misses + stats().lookups, 0u);
}

TEST_F(PreloadTest, DoesNothingWhereThereIsNothingToDo) {
  proves("PRELOAD-02", "PRELOAD-03", "PRELOAD-04");
  EXPECT_EQ(preload({}), 0u);
  EXPECT_EQ(preload({1, 2, 3}), 0u);
  EXPECT_FALSE(is_hot(1));
  room_for(0);
  EXPECT_EQ(preload({1, 2, 3, 4}), 0u);
  EXPECT_EQ(stats().preload_calls, 0u);
  EXPECT_EQ(stats().preload_time_ms, 0u);
}

TEST_F(PreloadTest, SkipsWhatIsUnknownRepeatedOrHot) {
  proves("PRELOAD-05", "PRELOAD-06", "PRELOAD-17", "DEF-65");
  EXPECT_EQ(preload({1, 90, 2, 3, 91, 4, 5}), 5u);
  EXPECT_EQ(preload({5, 6, 7, 8, 6, 7, 8}), 0u);  // Three cold ones, however often named.
  store_.restart();
  store_.load(block(1));
  EXPECT_EQ(preload({1, 2, 3, 4, 5}), 4u);
  EXPECT_EQ(stats().hot_cache_promotions, 5u);
}

TEST_F(PreloadTest, AMissingFileIsForgottenAndTheOthersLoad) {
  proves("PRELOAD-07");
  ASSERT_TRUE(store_.disk->unlink(store_.path(block(2))).ok());
  EXPECT_EQ(preload({1, 2, 3, 4, 5}), 4u);
  EXPECT_FALSE(is_hot(2));
  EXPECT_FALSE(store_.cache->has_block(block(2).hash));
  EXPECT_EQ(stats().misses + stats().errors, 0u);
}

TEST_F(PreloadTest, AFileOfAnotherVersionIsNotLoaded) {
  proves("PRELOAD-16");
  std::string bytes = *store_.disk->read_all(store_.path(block(2)));
  const std::string key = "\"omlx_cache_format_version\":\"";
  bytes[bytes.find(key) + key.size()] = '4';
  store_.disk->write_all(store_.path(block(2)), bytes);
  EXPECT_EQ(preload({1, 2, 3, 4, 5}), 4u);
  EXPECT_FALSE(is_hot(2));
}

TEST_F(PreloadTest, TakesWhatFitsInTheOrderOfTheList) {
  proves("PRELOAD-08", "PRELOAD-09", "PRELOAD-10");
  room_for(4);
  EXPECT_EQ(preload({8, 7, 6, 5, 4}), 4u);
  EXPECT_FALSE(is_hot(4));
  EXPECT_EQ(preload({1, 2, 3, 4}), 0u);  // Full.
  EXPECT_TRUE(is_hot(8));
  room_for(7);
  EXPECT_EQ(preload({1, 2, 3, 4}), 0u);  // Three would fit.
}

TEST_F(PreloadTest, OthersMayHaveTakenTheBudget) {
  proves("PRELOAD-11");
  const auto budget = HotBudget::create(5 * kBlock);
  store_.options.budget = budget;
  store_.restart();
  TestStore other;
  other.options.budget = budget;
  other.open();
  for (uint64_t k = 1; k <= 5; ++k) other.save(block(k));
  EXPECT_EQ(preload({1, 2, 3, 4, 5}), 0u);
  EXPECT_EQ(budget->total_bytes(), 5 * kBlock);
  EXPECT_FALSE(is_hot(1));
}

TEST_F(PreloadTest, LoadsAfterItAreMemoryHits) {
  proves("PRELOAD-13");
  preload({1, 2, 3, 4, 5});
  store_.files->clear_record();
  for (uint64_t k = 1; k <= 5; ++k) EXPECT_EQ(store_.load(block(k)), "hot");
  EXPECT_TRUE(store_.files->calls().empty());
  EXPECT_EQ(stats().hot_cache_hits, 5u);
}

TEST_F(PreloadTest, TheOrderOfUseIsThatOfTheList) {
  proves("PRELOAD-18");
  EXPECT_EQ(preload({5, 3, 1, 4, 2}), 5u);
  std::vector<uint64_t> leaving;
  for (uint64_t left = 4; left > 0; --left) {
    store_.cache->shrink_hot_to(left * kBlock);
    for (uint64_t k = 1; k <= 5; ++k) {
      if (!is_hot(k) && std::count(leaving.begin(), leaving.end(), k) == 0) leaving.push_back(k);
    }
  }
  EXPECT_EQ(leaving, (std::vector<uint64_t>{5, 3, 1, 4}));
}

TEST_F(PreloadTest, ThresholdAndWorkersAreOptions) {
  proves("PRELOAD-19", "PRELOAD-15");
  store_.options.preload_min_blocks = 1;
  store_.options.preload_max_workers = 3;
  store_.restart();
  EXPECT_EQ(preload({1}), 1u);
  EXPECT_EQ(store_.executor->pending(), 0u);
  EXPECT_EQ(preload({2, 3, 4, 5, 6}), 5u);
  EXPECT_EQ(store_.executor->pending(), 2u);  // Two beside the caller; here they came too late.
  store_.executor->run_all();
  EXPECT_EQ(stats().preload_blocks_loaded, 6u);
}

TEST_F(PreloadTest, WorkersShareTheBlocksWithTheCaller) {
  proves("PRELOAD-15");
  store_.files->clear_record();
  BlockedCalls held = store_.files->plan().block(Op::kRead, "");
  std::thread caller([&] { EXPECT_EQ(preload({1, 2, 3, 4, 5, 6, 7, 8}), 8u); });
  ASSERT_TRUE(held.wait_until_blocked());
  std::thread worker([&] { store_.executor->run_all(); });
  ASSERT_TRUE(held.wait_until_blocked(2));
  held.release();
  caller.join();
  worker.join();
  std::set<std::thread::id> readers;
  for (const auto& call : store_.files->calls()) {
    if (call.op == Op::kRead) readers.insert(call.thread);
  }
  EXPECT_EQ(readers.size(), 2u);
}

TEST_F(PreloadTest, RunsBesideLoadsOfTheSameBlocks) {
  proves("PRELOAD-14");
  std::thread loader([&] {
    for (uint64_t k = 1; k <= 8; ++k) {
      const std::string got = store_.load(block(k));
      EXPECT_TRUE(got == "hot" || got == "disk") << got;
    }
  });
  preload({8, 7, 6, 5, 4, 3, 2, 1});
  loader.join();
  for (uint64_t k = 1; k <= 8; ++k) EXPECT_EQ(store_.load(block(k)), "hot");
  EXPECT_EQ(stats().hot_cache_size_bytes, 8 * kBlock);
}

}  // namespace
}  // namespace kvkeep
