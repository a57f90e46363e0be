// Blocks that a caller gives up: no longer served, still counted.
#include <gtest/gtest.h>

#include <thread>

#include "testing/proves.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using testing::blk;
using testing::BlockedCalls;
using testing::Op;
using testing::proves;
using testing::TestBlock;
using testing::TestStore;

class ForgetTest : public ::testing::Test {
 protected:
  ForgetTest() { store_.open(); }
  bool forget(const TestBlock& block) { return store_.cache->forget_block(block.hash); }
  CacheStats stats() { return store_.cache->stats(); }
  TestStore store_;
};

TEST_F(ForgetTest, AFileOf1234BytesStaysAndIsCounted) {
  proves("FORGET-01", "RUL-32");
  const TestBlock block = testing::sized(1, 1234);
  store_.save_and_write(block);
  ASSERT_EQ(store_.block_bytes(), 1234u);
  const auto before = store_.disk->read_all(store_.path(block));
  store_.files->clear_record();
  EXPECT_TRUE(forget(block));
  EXPECT_TRUE(store_.files->calls().empty());
  EXPECT_FALSE(store_.cache->has_block(block.hash));
  EXPECT_EQ(store_.load(block), "forgotten");
  EXPECT_EQ(stats().missed(MissReason::kForgotten), 1u);
  EXPECT_EQ(stats().incompatible_files, 1u);
  EXPECT_EQ(store_.block_bytes(), 1234u);
  EXPECT_EQ(store_.disk->read_all(store_.path(block)), before);
}

TEST_F(ForgetTest, WhatIsNotServedCannotBeForgotten) {
  proves("FORGET-02");
  EXPECT_FALSE(forget(blk(1)));
  store_.save_and_write(blk(1));
  EXPECT_TRUE(forget(blk(1)));
  const uint64_t tracked = store_.cache->tracked_size();
  EXPECT_FALSE(forget(blk(1)));
  EXPECT_EQ(store_.cache->tracked_size(), tracked);
  EXPECT_EQ(stats().incompatible_files, 1u);
  ASSERT_TRUE(store_.cache->close({}).ok());
  EXPECT_FALSE(forget(blk(1)));
}

TEST_F(ForgetTest, AQueuedBlockIsCancelledAndLeavesNothing) {
  proves("FORGET-04", "DEF-07");
  ASSERT_EQ(store_.save(blk(1)), "queued");
  EXPECT_TRUE(forget(blk(1)));
  EXPECT_EQ(store_.load(blk(1)), "forgotten");
  EXPECT_EQ(store_.block_bytes(), 0u);
  EXPECT_EQ(store_.cache->tracked_count(), 0u);
  store_.executor->run_all();
  EXPECT_FALSE(store_.disk->read_all(store_.path(blk(1))).has_value());
  EXPECT_EQ(stats().saves_persisted, 0u);
  EXPECT_EQ(stats().writes_cancelled, 1u);
  EXPECT_EQ(stats().pending_blocks, 0u);
}

TEST_F(ForgetTest, ABlockThatIsBeingWrittenIsNotCommitted) {
  proves("FORGET-04", "DEF-07", "LIFE-03");
  BlockedCalls held = store_.files->plan().block(Op::kAppend, "");
  ASSERT_EQ(store_.save(blk(1)), "queued");
  std::thread writer([this] { store_.executor->run_all(); });
  ASSERT_TRUE(held.wait_until_blocked());
  EXPECT_TRUE(forget(blk(1)));
  held.release();
  writer.join();
  EXPECT_EQ(store_.load(blk(1)), "forgotten");
  EXPECT_FALSE(store_.disk->read_all(store_.path(blk(1))).has_value());
  EXPECT_EQ(store_.block_bytes(), 0u);
  EXPECT_EQ(stats().incompatible_files, 0u);
}

TEST_F(ForgetTest, AForgottenFileWhoseReplacementFailsIsCountedOnce) {
  proves("DEF-07");
  store_.save_and_write(blk(1));
  EXPECT_TRUE(forget(blk(1)));
  const uint64_t tracked = store_.cache->tracked_size();
  store_.files->plan().fail(Op::kAppend, "", EIO);
  ASSERT_EQ(store_.save(blk(1)), "queued");
  ASSERT_EQ(store_.save(blk(2)), "queued");
  EXPECT_TRUE(forget(blk(2)));
  store_.executor->run_all();
  EXPECT_EQ(store_.cache->tracked_size(), tracked);
  EXPECT_EQ(store_.cache->tracked_count(), 1u);
  EXPECT_EQ(store_.load(blk(1)), "forgotten");
}

TEST_F(ForgetTest, ABlockThatIsBeingRenamedIsForgottenAfterwards) {
  BlockedCalls held = store_.files->plan().block(Op::kRename, "");
  ASSERT_EQ(store_.save(blk(1)), "queued");
  std::thread writer([this] { store_.executor->run_all(); });
  ASSERT_TRUE(held.wait_until_blocked());
  std::thread caller([this] { EXPECT_TRUE(forget(blk(1))); });
  held.release();
  writer.join();
  caller.join();
  EXPECT_EQ(store_.load(blk(1)), "forgotten");
  EXPECT_EQ(stats().incompatible_files, 1u);
}

TEST_F(ForgetTest, ALoadInFlightDoesNotBringTheBlockBack) {
  proves("RUL-48");
  store_.save_and_write(blk(1));
  BlockedCalls held = store_.files->plan().block(Op::kRead, "");
  std::thread reader([this] { EXPECT_EQ(store_.load(blk(1)), "disk"); });
  ASSERT_TRUE(held.wait_until_blocked());
  EXPECT_TRUE(forget(blk(1)));
  held.release();
  reader.join();
  EXPECT_FALSE(store_.cache->has_block(blk(1).hash));
  EXPECT_EQ(store_.load(blk(1)), "forgotten");
}

TEST_F(ForgetTest, AForgottenBlockCanBeSavedAgain) {
  store_.save_and_write(blk(1));
  EXPECT_TRUE(forget(blk(1)));
  ASSERT_EQ(store_.save(blk(1)), "queued");
  EXPECT_EQ(store_.load(blk(1)), "pending");
  store_.executor->run_all();
  EXPECT_EQ(store_.load(blk(1)), "disk");
  EXPECT_EQ(stats().incompatible_files, 0u);
  EXPECT_EQ(store_.block_bytes(), store_.file_bytes(blk(1)));
}

TEST_F(ForgetTest, AForgottenBlockKeepsItsPlaceAmongThoseThatLeave) {
  proves("DEF-33");
  store_.save_and_write(blk(1));
  store_.options.max_size_bytes = store_.own_bytes + 3 * store_.file_bytes(blk(1));
  store_.restart();
  for (const uint64_t k : {2, 3}) {
    store_.clock->advance(std::chrono::seconds(1));
    store_.save_and_write(blk(k));
  }
  EXPECT_TRUE(forget(blk(2)));
  store_.save_and_write(blk(4));
  EXPECT_EQ(store_.load(blk(1)), "evicted");
  EXPECT_EQ(store_.load(blk(2)), "forgotten");
  store_.save_and_write(blk(5));
  EXPECT_EQ(store_.load(blk(2)), "evicted");
  EXPECT_EQ(store_.load(blk(3)), "disk");
}

}  // namespace
}  // namespace kvkeep
