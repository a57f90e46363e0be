// What a save does while the write queue is full, and what the writer does between writes and after
// accidents.
#include <gtest/gtest.h>

#include <cerrno>
#include <new>
#include <thread>

#include "testing/proves.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using std::chrono::seconds;
using testing::blk;
using testing::Op;
using testing::proves;
using testing::TestStore;

class InlineWriteTest : public ::testing::Test {
 protected:
  InlineWriteTest() {
    store_.options.pending_cap = 2;
    store_.open();
  }
  // Two blocks wait, and nobody writes them.
  void fill_queue() {
    ASSERT_EQ(store_.save(blk(1)), "queued");
    ASSERT_EQ(store_.save(blk(2)), "queued");
  }
  CacheStats stats() { return store_.cache->stats(); }

  TestStore store_;
};

TEST_F(InlineWriteTest, ASaveThatFindsTheQueueFullWritesItself) {
  proves("SAVE-16", "SAVE-26", "RUL-11");
  fill_queue();
  EXPECT_EQ(store_.save(blk(3)), "written");
  EXPECT_EQ(store_.load(blk(3)), "disk");
  EXPECT_EQ(stats().ssd_inline_write_fallbacks, 1u);
  EXPECT_EQ(stats().ssd_write_drops, 0u);
  EXPECT_EQ(stats().saves, 3u);
  EXPECT_EQ(stats().saves_persisted, 1u);
  EXPECT_EQ(stats().pending_blocks, 2u);
  EXPECT_EQ(store_.logger->count(LogLevel::kWarning), 1u);
  EXPECT_TRUE(store_.logger->contains("pending_cap 2"));
  EXPECT_EQ(store_.save(blk(4)), "written");
  EXPECT_EQ(store_.logger->count(LogLevel::kWarning), 1u);
  store_.executor->run_all();
  EXPECT_EQ(store_.load(blk(1)), "disk");
  EXPECT_EQ(stats().saves_persisted, 4u);
  EXPECT_EQ(store_.cache->flush(std::nullopt)->failed.size(), 0u);
}

TEST_F(InlineWriteTest, OneSaveIsOneBlockAlsoInline) {
  proves("SAVE-16", "SAVE-26");
  store_.close();
  store_.options.pending_cap = 1;
  store_.open();
  ASSERT_EQ(store_.save(blk(1)), "queued");
  EXPECT_EQ(store_.save(blk(2)), "written");
  EXPECT_EQ(stats().saves, 2u);
  EXPECT_EQ(stats().saves_persisted, 1u);
}

TEST_F(InlineWriteTest, TheSaverWaitsOnceForRoomFirst) {
  proves("SAVE-15");
  store_.close();
  store_.options.queue_wait = seconds(1);
  store_.open();
  fill_queue();
  std::string saved;
  std::thread saver([&] { saved = store_.save(blk(3)); });
  ASSERT_TRUE(store_.clock->wait_for_waiters(1));
  store_.clock->advance(std::chrono::milliseconds(999));
  ASSERT_TRUE(store_.clock->wait_for_waiters(1));  // Still the same wait.
  EXPECT_EQ(stats().ssd_inline_write_fallbacks, 0u);
  store_.executor->run(1);
  saver.join();
  EXPECT_EQ(saved, "queued");
  std::thread late([&] { saved = store_.save(blk(4)); });
  ASSERT_TRUE(store_.clock->wait_for_waiters(1));
  store_.clock->advance(seconds(1));
  late.join();
  EXPECT_EQ(saved, "written");
}

TEST_F(InlineWriteTest, AFailedInlineWriteLeavesNothing) {
  proves("SAVE-17");
  fill_queue();
  const uint64_t tracked = store_.cache->tracked_size();
  store_.files->plan().fail(Op::kAppend, "", EIO);
  EXPECT_EQ(store_.save(blk(3)), "io");
  EXPECT_EQ(store_.load(blk(3)), "absent");
  EXPECT_EQ(stats().saves, 2u);
  EXPECT_EQ(stats().errors, 1u);
  EXPECT_EQ(stats().ssd_write_drops, 0u);
  EXPECT_EQ(stats().refused(Refusal::kIo), 1u);
  EXPECT_EQ(stats().pending_blocks, 2u);
  EXPECT_EQ(store_.cache->tracked_size(), tracked);
  EXPECT_TRUE(store_.logger->contains("inline-fallback"));
  store_.executor->run_all();
  EXPECT_TRUE(store_.cache->flush(std::nullopt)->failed.empty());  // The caller knows already.
}

TEST_F(InlineWriteTest, AnInlineBlockThatIsDeletedMeanwhileIsNotCalledSaved) {
  proves("DEF-72");
  fill_queue();
  auto held = store_.files->plan().block(Op::kAppend, "");
  std::string saved;
  std::thread saver([&] { saved = store_.save(blk(3)); });
  ASSERT_TRUE(held.wait_until_blocked());
  EXPECT_EQ(store_.load(blk(3)), "pending");
  EXPECT_TRUE(*store_.cache->delete_block(blk(3).hash));
  held.release();
  saver.join();
  EXPECT_EQ(saved, "busy");
  EXPECT_EQ(stats().saves, 2u);
  EXPECT_EQ(stats().saves_persisted, 0u);
  EXPECT_EQ(stats().ssd_inline_write_fallbacks, 0u);
  EXPECT_FALSE(store_.disk->read_all(store_.path(blk(3))).has_value());
}

TEST_F(InlineWriteTest, NobodyWritesToADiskThatDoesNotAnswer) {
  proves("RUL-11");
  fill_queue();
  auto held = store_.files->plan().block(Op::kAppend, "");
  std::thread writer([this] { store_.executor->run(1); });
  ASSERT_TRUE(held.wait_until_blocked());
  store_.clock->advance(seconds(5) + std::chrono::milliseconds(1));
  EXPECT_EQ(store_.save(blk(3)), "busy");
  EXPECT_EQ(stats().refused(Refusal::kBusy), 1u);
  EXPECT_EQ(stats().ssd_inline_write_fallbacks, 0u);
  held.release();
  writer.join();
  EXPECT_EQ(store_.save(blk(3)), "queued");
  EXPECT_EQ(store_.save(blk(4)), "written");  // It answers again.
}

TEST_F(InlineWriteTest, ABusyWriterIsNoReasonToRefuseBeforeItsDeadline) {
  proves("RUL-11");
  fill_queue();
  auto held = store_.files->plan().block(Op::kAppend, "");
  std::thread writer([this] { store_.executor->run(1); });
  ASSERT_TRUE(held.wait_until_blocked(1));
  store_.clock->advance(seconds(5));
  std::string saved;
  std::thread saver([&] { saved = store_.save(blk(3)); });
  ASSERT_TRUE(held.wait_until_blocked(2));
  held.release();
  writer.join();
  saver.join();
  EXPECT_EQ(saved, "written");
}

TEST_F(InlineWriteTest, AnExceptionCostsTheBlockAndNotTheWriter) {
  proves("WRITER-04", "DEF-18");
  for (const Op op : {Op::kCreate, Op::kAppend, Op::kTruncate}) {
    const auto lost = blk(10 + static_cast<uint64_t>(op));
    bool thrown = false;
    store_.disk->on_operation([&](const testing::Operation& done) {
      if (done.op == op && !std::exchange(thrown, true)) throw std::bad_alloc();
    });
    const uint64_t restarts = stats().writer_restarts;
    ASSERT_EQ(store_.save(lost), "queued");
    ASSERT_EQ(store_.save(blk(1)), "queued");
    store_.executor->run_all();
    store_.disk->on_operation({});
    if (!thrown) continue;  // Not every profile cuts its files.
    EXPECT_EQ(stats().writer_restarts, restarts + 1);
    EXPECT_EQ(store_.load(lost), "absent");
    EXPECT_EQ(store_.load(blk(1)), "disk");
    EXPECT_EQ(store_.cache->flush(std::nullopt)->failed, std::vector{lost.hash});
    EXPECT_EQ(stats().pending_blocks, 0u);
    EXPECT_TRUE(*store_.cache->delete_block(blk(1).hash));
    EXPECT_EQ(store_.block_bytes(), 0u);
  }
  EXPECT_GE(stats().writer_restarts, 2u);
}

TEST_F(InlineWriteTest, TheWriterKeepsAShareFree) {
  proves("RUL-11");
  store_.close();
  store_.options.background_reclaim = 0.25;
  store_.options.pending_cap = 100;
  store_.open();
  const uint64_t bytes = 8192;
  const auto block = [](uint64_t k) { return testing::sized(100 + k, bytes); };
  store_.cache->set_configured_max_size(100 * bytes);
  for (uint64_t k = 0; k < 100; ++k) {
    store_.files->clear_record();
    ASSERT_EQ(store_.save(block(k)), "queued");
    EXPECT_EQ(store_.files->count(Op::kUnlink), 0u);
    store_.executor->run_all();
  }
  EXPECT_LE(store_.cache->tracked_size(), 75 * bytes);
  EXPECT_GT(store_.cache->tracked_size(), 73 * bytes);
  EXPECT_EQ(store_.load(block(99)), "disk");
  EXPECT_EQ(store_.load(block(0)), "evicted");
}

TEST_F(InlineWriteTest, BlocksThatWaitAreNotGivenUpForAReserve) {
  store_.close();
  store_.options.background_reclaim = 0.5;
  store_.options.pending_cap = 100;
  store_.open();
  store_.cache->set_configured_max_size(10 * 8192 + store_.own_bytes);
  for (uint64_t k = 0; k < 9; ++k) ASSERT_EQ(store_.save(testing::sized(100 + k, 8192)), "queued");
  store_.executor->run(1);
  EXPECT_EQ(stats().writes_cancelled, 0u);
  store_.executor->run_all();
  EXPECT_EQ(stats().saves_persisted, 9u);
}

TEST_F(InlineWriteTest, OffTheWriterKeepsNothingFree) {
  proves("RUL-64", "DEF-75");
  store_.cache->set_configured_max_size(10 * 8192 + store_.own_bytes);
  for (uint64_t k = 0; k < 20; ++k) store_.save_and_write(testing::sized(100 + k, 8192));
  EXPECT_EQ(store_.block_bytes(), 10 * 8192u);
}

}  // namespace
}  // namespace kvkeep
