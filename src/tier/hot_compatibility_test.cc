// Blocks in the hot tier that are forgotten, or that what the cache is for no longer fits.
#include <gtest/gtest.h>

#include <thread>

#include "testing/proves.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using testing::BlockedCalls;
using testing::Op;
using testing::proves;
using testing::TestBlock;
using testing::TestStore;
using Types = std::vector<std::string>;

TestBlock block(uint64_t k) { return testing::sized(k, 4096); }

class HotCompatibilityTest : public ::testing::Test {
 protected:
  HotCompatibilityTest() {
    store_.options.model_name = "m";
    store_.options.hot_max_bytes = 1 << 20;
    store_.open();
  }
  bool expect(const char* type) { return store_.cache->set_expected_layer_types(Types{type}, {}); }
  CacheStats stats() { return store_.cache->stats(); }
  void expect_nothing_hot() {
    EXPECT_EQ(stats().hot_cache_entries, 0u);
    EXPECT_EQ(stats().hot_cache_size_bytes, 0u);
    EXPECT_EQ(stats().hot_dirty_blocks, 0u);
  }
  TestStore store_;
};

TEST_F(HotCompatibilityTest, LookingWhetherABlockIsThereTouchesNothing) {
  proves("HAS-02");
  store_.save(block(1));
  store_.restart();                            // 1: in the index.
  ASSERT_EQ(store_.save(block(2)), "stored");  // 2: in the hot tier.
  store_.save(block(3));
  EXPECT_TRUE(store_.cache->forget_block(block(3).hash));
  TestBlock through = block(4);  // 4: on its way to the disk.
  through.input.write_back = false;
  ASSERT_EQ(store_.save(through), "queued");
  const std::string before = to_json(stats());
  store_.files->clear_record();
  for (const uint64_t k : {1, 2, 4}) EXPECT_TRUE(store_.cache->has_block(block(k).hash));
  EXPECT_FALSE(store_.cache->has_block(block(3).hash));
  EXPECT_TRUE(store_.files->calls().empty());
  EXPECT_EQ(to_json(stats()), before);
  store_.flush();
  EXPECT_TRUE(store_.cache->forget_block(block(1).hash));
  EXPECT_FALSE(store_.cache->has_block(block(1).hash)) << "tracked, but not served";
  EXPECT_EQ(stats().incompatible_files, 1u);
}

TEST_F(HotCompatibilityTest, AForgottenBlockLeavesEveryTier) {
  proves("FORGET-03");
  store_.save(block(2));
  store_.flush();                              // Clean, with a file.
  ASSERT_EQ(store_.save(block(1)), "stored");  // Dirty.
  TestBlock through = block(3);
  through.input.write_back = false;
  ASSERT_EQ(store_.save(through), "queued");
  for (const uint64_t k : {1, 2, 3}) {
    EXPECT_TRUE(store_.cache->forget_block(block(k).hash));
    EXPECT_EQ(store_.load(block(k)), "forgotten");
  }
  expect_nothing_hot();
  store_.flush();
  EXPECT_FALSE(store_.disk->read_all(store_.path(block(3))).has_value());
  EXPECT_TRUE(store_.disk->read_all(store_.path(block(2))).has_value());
}

TEST_F(HotCompatibilityTest, ASweepTakesHotAndPendingBlocks) {
  proves("SWEEP-11", "SWEEP-12", "DEF-52");
  store_.save(block(1));
  store_.flush();                              // Clean, with a file.
  ASSERT_EQ(store_.save(block(2)), "stored");  // Dirty.
  TestBlock through = block(3);
  through.input.write_back = false;
  ASSERT_EQ(store_.save(through), "queued");
  EXPECT_TRUE(expect("ArraysCache"));
  EXPECT_EQ(store_.cache->sweep_stale_layouts(), 3u);
  expect_nothing_hot();
  store_.flush();
  for (const uint64_t k : {1, 2, 3}) {
    EXPECT_EQ(store_.load(block(k)), "layout");
    EXPECT_EQ(store_.disk->read_all(store_.path(block(k))).has_value(), k == 1);
  }
  EXPECT_EQ(stats().incompatible_files, 1u);
}

TEST_F(HotCompatibilityTest, AHotBlockWithAWriteUnderWayIsNotCommitted) {
  proves("RUL-48");
  BlockedCalls held = store_.files->plan().block(Op::kAppend, "");
  ASSERT_EQ(store_.save(block(1)), "stored");
  std::thread flusher([this] { store_.flush(); });
  ASSERT_TRUE(held.wait_until_blocked());
  EXPECT_TRUE(expect("ArraysCache"));
  held.release();
  flusher.join();
  expect_nothing_hot();
  EXPECT_EQ(store_.load(block(1)), "layout");
  EXPECT_EQ(store_.block_bytes(), 0u);
}

TEST_F(HotCompatibilityTest, AReadDuringAChangeIsNotPromoted) {
  proves("RUL-48");
  store_.save(block(1));
  store_.restart();
  BlockedCalls held = store_.files->plan().block(Op::kRead, "");
  std::thread reader([this] { EXPECT_EQ(store_.load(block(1)), "layout"); });
  ASSERT_TRUE(held.wait_until_blocked());
  EXPECT_TRUE(expect("ArraysCache"));
  held.release();
  reader.join();
  expect_nothing_hot();
}

TEST_F(HotCompatibilityTest, AReadOfAFileThatWasReplacedMeanwhileIsNotPromoted) {
  proves("RUL-48");
  TestBlock through = block(1);
  TestBlock other = block(2);
  through.input.write_back = other.input.write_back = false;
  store_.save(through);
  store_.restart();
  ASSERT_EQ(store_.save(other), "queued");  // What the cache is for is settled from here on.
  store_.executor->run_all();
  BlockedCalls held = store_.files->plan().block(Op::kRead, "");
  std::thread reader([this] { EXPECT_EQ(store_.load(block(1)), "disk"); });
  ASSERT_TRUE(held.wait_until_blocked());
  EXPECT_TRUE(*store_.cache->delete_block(block(1).hash));
  ASSERT_EQ(store_.save(through), "queued");
  store_.executor->run_all();
  held.release();
  reader.join();
  expect_nothing_hot();
}

}  // namespace
}  // namespace kvkeep
