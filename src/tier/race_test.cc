// Two threads at one block, held at the worst moment; and many threads at many.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "testing/proves.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using testing::blk;
using testing::BlockedCalls;
using testing::Op;
using testing::proves;
using testing::TestStore;

class RaceTest : public ::testing::Test {
 protected:
  RaceTest() { store_.open(); }
  CacheStats stats() { return store_.cache->stats(); }
  std::thread write_all() {
    return std::thread([this] { store_.executor->run_all(); });
  }
  TestStore store_;
};

TEST_F(RaceTest, ABlockIsFoundWhileItIsWrittenAndRenamed) {
  proves("LIFE-01", "LIFE-02", "DEF-01", "DEF-02");
  for (const Op op : {Op::kCreate, Op::kAppend, Op::kRename}) {
    const auto block = blk(static_cast<uint64_t>(op));
    BlockedCalls held = store_.files->plan().block(op, "");
    ASSERT_EQ(store_.save(block), "queued");
    std::thread writer = write_all();
    ASSERT_TRUE(held.wait_until_blocked());
    EXPECT_TRUE(store_.cache->has_block(block.hash));
    EXPECT_EQ(store_.load(block), "pending");
    EXPECT_EQ(store_.save(block), "present");
    held.release();
    writer.join();
    EXPECT_EQ(store_.load(block), "disk");
  }
}

TEST_F(RaceTest, ADeletedBlockIsNotWrittenAfterwards) {
  proves("DEL-03", "DEL-04", "DEF-08", "DEF-61", "IDX-15");
  ASSERT_EQ(store_.save(blk(1)), "queued");
  EXPECT_TRUE(*store_.cache->delete_block(blk(1).hash));
  store_.executor->run_all();
  BlockedCalls held = store_.files->plan().block(Op::kAppend, "");
  ASSERT_EQ(store_.save(blk(2)), "queued");
  std::thread writer = write_all();
  ASSERT_TRUE(held.wait_until_blocked());
  EXPECT_TRUE(*store_.cache->delete_block(blk(2).hash));
  EXPECT_FALSE(store_.cache->has_block(blk(2).hash));
  held.release();
  writer.join();
  for (const uint64_t k : {1, 2}) {
    EXPECT_FALSE(store_.disk->read_all(store_.path(blk(k))).has_value());
    EXPECT_EQ(store_.load(blk(k)), "deleted");
  }
  EXPECT_EQ(stats().saves_persisted, 0u);
  EXPECT_EQ(stats().writes_cancelled, 2u);
  EXPECT_EQ(store_.block_bytes(), 0u);
}

TEST_F(RaceTest, ADeleteDuringTheRenameWaitsAndWins) {
  proves("RUL-51", "DEL-02");
  BlockedCalls held = store_.files->plan().block(Op::kRename, "");
  ASSERT_EQ(store_.save(blk(1)), "queued");
  std::thread writer = write_all();
  ASSERT_TRUE(held.wait_until_blocked());
  std::thread deleter([this] { EXPECT_TRUE(*store_.cache->delete_block(blk(1).hash)); });
  held.release();
  writer.join();
  deleter.join();
  EXPECT_FALSE(store_.disk->read_all(store_.path(blk(1))).has_value());
  EXPECT_EQ(store_.load(blk(1)), "deleted");
}

TEST_F(RaceTest, ASaveDuringTheUnlinkIsVisibleAtOnceAndWrittenAfterIt) {
  proves("LIFE-04", "LIFE-06", "DEF-03", "RUL-51");
  store_.save_and_write(blk(1));
  BlockedCalls held = store_.files->plan().block(Op::kUnlink, "");
  std::thread deleter([this] { EXPECT_TRUE(*store_.cache->delete_block(blk(1).hash)); });
  ASSERT_TRUE(held.wait_until_blocked());
  EXPECT_EQ(store_.load(blk(1)), "evicted");  // Leaving: nothing in memory to answer from.
  EXPECT_EQ(store_.save(blk(1)), "queued");
  EXPECT_EQ(store_.load(blk(1)), "pending");
  EXPECT_EQ(store_.executor->pending(), 0u);
  held.release();
  deleter.join();
  store_.executor->run_all();
  EXPECT_EQ(store_.load(blk(1)), "disk");
}

TEST_F(RaceTest, ALoadOfOneBlockNeverWaitsForAnother) {
  proves("LOAD-08", "EVICT-13");
  store_.save_and_write(blk(1));
  store_.save_and_write(blk(2));
  store_.save_and_write(blk(3));
  BlockedCalls reads = store_.files->plan().block(Op::kRead, store_.path(blk(1)));
  BlockedCalls unlinks = store_.files->plan().block(Op::kUnlink, store_.path(blk(3)));
  std::thread reader([this] { EXPECT_EQ(store_.load(blk(1)), "disk"); });
  std::thread deleter([this] { EXPECT_TRUE(*store_.cache->delete_block(blk(3).hash)); });
  ASSERT_TRUE(reads.wait_until_blocked());
  ASSERT_TRUE(unlinks.wait_until_blocked());
  EXPECT_EQ(store_.load(blk(2)), "disk");
  reads.release();
  unlinks.release();
  reader.join();
  deleter.join();
}

TEST_F(RaceTest, ALoadInFlightDoesNotBringBackADeletedBlock) {
  proves("RUL-48");
  store_.save_and_write(blk(1));
  BlockedCalls held = store_.files->plan().block(Op::kRead, "");
  std::thread reader([this] { EXPECT_EQ(store_.load(blk(1)), "disk"); });
  ASSERT_TRUE(held.wait_until_blocked());
  EXPECT_TRUE(*store_.cache->delete_block(blk(1).hash));
  held.release();
  reader.join();
  EXPECT_FALSE(store_.cache->has_block(blk(1).hash));
  EXPECT_EQ(store_.cache->tracked_count(), 0u);
}

TEST_F(RaceTest, ADamagedReadDoesNotTakeTheFileThatReplacedIt) {
  store_.save_and_write(blk(1));
  store_.disk->flip_bit(store_.path(blk(1)), 80'000);
  BlockedCalls held = store_.files->plan().block(Op::kRead, "");
  std::thread reader([this] { EXPECT_EQ(store_.load(blk(1)), "damaged"); });
  ASSERT_TRUE(held.wait_until_blocked());
  EXPECT_TRUE(*store_.cache->delete_block(blk(1).hash));
  store_.save_and_write(blk(1));
  held.release();
  reader.join();
  EXPECT_EQ(store_.load(blk(1)), "disk");
  EXPECT_EQ(stats().quarantined, 0u);
}

TEST_F(RaceTest, CloseReportsWhatADiskThatHangsHasKept) {
  proves("CLOSE-09", "DEF-16", "RUL-57");
  BlockedCalls held = store_.files->plan().block(Op::kAppend, "");
  ASSERT_EQ(store_.save(blk(1)), "queued");
  ASSERT_EQ(store_.save(blk(2)), "queued");
  std::thread writer = write_all();
  ASSERT_TRUE(held.wait_until_blocked());
  const auto report = store_.cache->close(Duration::zero());
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), Code::kDeadlineExceeded);
  EXPECT_NE(report.status().message().find("2 blocks"), std::string::npos);
  EXPECT_EQ(store_.try_open().status().code(), Code::kFailedPrecondition);  // Still ours.
  store_.cache.reset();
  held.release();
  writer.join();
  for (const std::string& path : store_.disk->paths()) {
    EXPECT_EQ(path.find(".safetensors"), std::string::npos) << path;
    EXPECT_EQ(path.find(".tmp"), std::string::npos) << path;
  }
  store_.open();  // The last task gave the directory back.
  store_.close();
}

TEST(RaceStressTest, ManyThreadsGetRightBytesOrAMiss) {
  proves("STAT-08", "LIFE-05", "DEF-04");
  TestStore store;
  store.options.max_size_bytes = 12 * 70'000;
  store.options.queue_wait = std::chrono::hours(1);
  store.options.pending_cap = 4;
  store.open();
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    while (!stop) {
      if (!store.executor->run_one()) std::this_thread::yield();
    }
    store.executor->run_all();
  });
  std::vector<std::thread> users;
  for (unsigned t = 0; t < 3; ++t) {
    users.emplace_back([&store, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 150; ++i) {
        const auto block = blk(random() % 16);
        switch (random() % 4) {
          case 0:
            EXPECT_TRUE(store.cache->delete_block(block.hash).ok());
            break;
          case 1:
            EXPECT_TRUE(store.cache->save_block(block.hash, block.input).ok());
            break;
          default:
            EXPECT_EQ(store.load(block).find("WRONG"), std::string::npos);
        }
        const CacheStats s = store.cache->stats();
        uint64_t missed = 0;
        for (const uint64_t n : s.miss_reason) missed += n;
        ASSERT_EQ(s.lookups, s.load_hits + missed);
        ASSERT_LE(s.allocated_bytes, store.options.max_size_bytes);
      }
    });
  }
  for (std::thread& user : users) user.join();
  stop = true;
  writer.join();
  EXPECT_EQ(store.cache->stats().errors, 0u);
  EXPECT_EQ(store.cache->stats().pending_blocks, 0u);
  for (uint64_t k = 0; k < 16; ++k) EXPECT_EQ(store.load(blk(k)).find("WRONG"), std::string::npos);
  store.close();
}

}  // namespace
}  // namespace kvkeep
