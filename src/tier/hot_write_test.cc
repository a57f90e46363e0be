// How dirty blocks of the hot tier get to disk: when they are due, when they must leave, at flush
// and at close.
#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

#include "testing/proves.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using std::chrono::seconds;
using testing::BlockedCalls;
using testing::Op;
using testing::proves;
using testing::sized;
using testing::TestBlock;
using testing::TestStore;

constexpr uint64_t kBlock = 4096;

TestBlock block(uint64_t k) { return sized(k, kBlock); }

TestBlock child_of(uint64_t parent, uint64_t k) {
  TestBlock child = sized(k, kBlock);
  child.input.parent = block(parent).hash;
  return child;
}

TestBlock direct(uint64_t k) {
  TestBlock through = block(k);
  through.input.write_back = false;
  return through;
}

class HotWriteTest : public ::testing::Test {
 protected:
  HotWriteTest() {
    store_.options.hot_max_bytes = 100 * kBlock;
    store_.open();
  }
  CacheStats stats() { return store_.cache->stats(); }
  // Names of the files in the order in which they got them.
  std::vector<std::string> renamed() {
    std::vector<std::string> names;
    for (const auto& call : store_.files->calls()) {
      if (call.op == Op::kRename) names.push_back(call.to);
    }
    return names;
  }
  TestStore store_;
};

TEST_F(HotWriteTest, ADirtyBlockIsWrittenWhenItIsDueAndStaysHot) {
  proves("RUL-33");
  store_.save(block(1));
  store_.clock->advance(seconds(1));
  store_.save(block(2));
  EXPECT_EQ(store_.executor->run_all(), 0u);
  store_.clock->advance(seconds(1));
  store_.executor->run_all();
  EXPECT_EQ(stats().saves_persisted, 1u);
  EXPECT_EQ(stats().hot_dirty_blocks, 1u);
  store_.clock->advance(seconds(1));
  store_.executor->run_all();
  EXPECT_EQ(stats().saves_persisted, 2u);
  EXPECT_EQ(stats().hot_dirty_blocks, 0u);
  EXPECT_EQ(store_.load(block(1)), "hot");
  store_.clock->advance(seconds(2));
  store_.executor->run_all();
  EXPECT_EQ(store_.executor->delayed(), 0u);  // No timer while nothing is dirty.
  store_.restart();
  EXPECT_EQ(store_.load(block(1)), "disk");
}

TEST_F(HotWriteTest, WithoutFlushAfterItIsWrittenAtFlushAndCloseOnly) {
  proves("RUL-33", "CLOSE-03", "CLOSE-04", "RUL-64");
  store_.options.flush_after.reset();
  store_.restart();
  store_.save(block(1));
  EXPECT_EQ(store_.executor->delayed(), 0u);
  store_.clock->advance(std::chrono::hours(24));
  EXPECT_EQ(store_.executor->run_all(), 0u);
  store_.restart();
  EXPECT_EQ(stats().hot_cache_entries, 0u);
  EXPECT_EQ(store_.load(block(1)), "disk");
}

TEST_F(HotWriteTest, DueBlocksLetNewOnesGoFirstUntilTheyAreTenTimesAsOld) {
  proves("RUL-33");
  store_.save(block(1));
  store_.clock->advance(seconds(2));
  store_.executor->run_one();  // The timer queues it.
  store_.save(direct(2));
  store_.files->clear_record();
  store_.executor->run_all();
  EXPECT_EQ(renamed(), (std::vector{store_.path(block(2)), store_.path(block(1))}));

  store_.save(block(3));
  store_.clock->advance(seconds(20));
  store_.executor->run_one();
  store_.save(direct(4));
  store_.files->clear_record();
  store_.executor->run_all();
  EXPECT_EQ(renamed(), (std::vector{store_.path(block(3)), store_.path(block(4))}));
}

TEST_F(HotWriteTest, ChainsAreWrittenHeadsFirst) {
  proves("RUL-12", "RUL-33");
  store_.save(child_of(2, 3));
  store_.save(child_of(1, 2));
  store_.save(block(1));
  store_.files->clear_record();
  store_.flush();
  EXPECT_EQ(renamed(),
            (std::vector{store_.path(block(1)), store_.path(block(2)), store_.path(block(3))}));
}

TEST_F(HotWriteTest, ParentsInACircleAreWrittenToo) {
  store_.save(child_of(2, 1));
  store_.save(child_of(1, 2));
  store_.flush();
  EXPECT_EQ(stats().saves_persisted, 2u);
}

TEST_F(HotWriteTest, FlushWritesDirtyBlocksAndNamesThoseThatFailed) {
  proves("RUL-34");
  store_.save(block(1));
  store_.save(block(2));
  store_.files->plan().fail(Op::kAppend, "", EIO);
  store_.executor->run_during([&] {
    const auto report = store_.cache->flush({});
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(report->flushed, 1u);
    EXPECT_EQ(report->failed, std::vector{block(1).hash});
  });
  EXPECT_EQ(store_.load(block(1)), "hot");  // Not lost: it is tried again.
  EXPECT_EQ(stats().ssd_write_drops, 0u);
  store_.clock->advance(seconds(60));
  store_.executor->run_all();
  EXPECT_EQ(stats().saves_persisted, 2u);
}

TEST_F(HotWriteTest, AFlushThatIsLateLeavesTheNamesOfFailedBlocksToTheNext) {
  proves("RUL-34");
  store_.save(direct(1));
  store_.files->plan().fail(Op::kAppend, "", EIO);
  store_.executor->run_all();
  store_.save(direct(2));
  EXPECT_EQ(store_.cache->flush(Duration::zero()).status().code(), Code::kDeadlineExceeded);
  store_.executor->run_during([&] {
    const auto report = store_.cache->flush({});
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(report->failed, std::vector{block(1).hash});
  });
}

TEST_F(HotWriteTest, FlushWaitsNoLongerThanItIsTold) {
  proves("RUL-34");
  store_.save(block(1));
  EXPECT_EQ(store_.cache->flush(Duration::zero()).status().code(), Code::kDeadlineExceeded);
  store_.executor->run_all();
}

TEST_F(HotWriteTest, ADirtyBlockIsWrittenOverAnOlderFile) {
  proves("CLOSE-08", "DEF-17");
  store_.disk->write_all(store_.path(block(1)), "something older");
  store_.restart();
  store_.save(block(1));
  store_.restart();
  EXPECT_EQ(store_.load(block(1)), "disk");
}

TEST_F(HotWriteTest, CloseNamesWhatItCouldNotWriteInTime) {
  proves("CLOSE-06", "CLOSE-09", "DEF-16");
  store_.save(block(1));
  store_.save(block(2));
  const auto report = store_.cache->close(Duration::zero());
  EXPECT_EQ(report.status().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(stats().ssd_write_drops, 2u);
  EXPECT_EQ(store_.logger->count("0 blocks were written, 2 were not"), 1u);
}

// A spill moves the image from one place to another while nobody can see neither.
TEST_F(HotWriteTest, ASpillOfABlockWhoseOlderWriteWasCancelledIsWritten) {
  proves("DEF-06", "PEND-05");
  store_.save(direct(1));
  ASSERT_TRUE(store_.cache->delete_block(block(1).hash).ok());  // Its ticket is still queued.
  store_.save(block(1));
  EXPECT_EQ(store_.cache->shrink_hot_to(0), kBlock);
  store_.executor->run_all();
  EXPECT_EQ(store_.load(block(1)), "disk");
}

TEST_F(HotWriteTest, ABlockThatIsBeingWrittenDoesNotLeaveRam) {
  store_.save(block(1));
  store_.clock->advance(seconds(2));
  store_.executor->run_one();
  EXPECT_EQ(stats().pending_blocks, 1u);
  EXPECT_EQ(stats().pending_bytes, 0u);  // Its image is charged to the hot tier.
  EXPECT_EQ(store_.cache->shrink_hot_to(0), 0u);
  store_.executor->run_all();
  EXPECT_EQ(store_.cache->shrink_hot_to(0), kBlock);
}

TEST_F(HotWriteTest, LoadsNeverWaitForRoomInTheQueue) {
  proves("DEF-20");
  store_.save(direct(1));
  store_.save(direct(2));
  store_.executor->run_all();
  store_.options.pending_cap = 1;
  store_.options.hot_max_bytes = kBlock;
  store_.options.queue_wait = std::chrono::hours(1);
  store_.options.flush_after.reset();
  store_.restart();
  EXPECT_EQ(store_.save(block(3)), "stored");
  EXPECT_EQ(store_.load(block(1)), "disk");  // 3 is spilled for it.
  EXPECT_EQ(store_.load(block(1)), "hot");
  store_.executor->run_all();
  EXPECT_EQ(store_.save(block(4)), "stored");
  EXPECT_EQ(store_.save(direct(5)), "queued");  // The queue is full now.
  EXPECT_EQ(store_.load(block(2)), "disk");     // Not kept, because 4 cannot leave.
  EXPECT_EQ(store_.load(block(4)), "hot");
  EXPECT_EQ(stats().hot_cache_promotions, 1u);
}

TEST_F(HotWriteTest, ABlockThatNoLongerFitsTheDiskIsDroppedByName) {
  store_.options.max_size_bytes = store_.own_bytes + 3 * kBlock;
  store_.options.flush_after.reset();
  store_.restart();
  EXPECT_EQ(store_.save(sized(1, 4 * kBlock)), "too_large");
  EXPECT_EQ(store_.save(block(2)), "stored");
}

TEST_F(HotWriteTest, DeletedWhileItIsWrittenItIsGone) {
  proves("DEL-03");
  store_.save(block(1));
  BlockedCalls held = store_.files->plan().block(Op::kAppend, "");
  store_.clock->advance(seconds(2));
  std::thread writer([&] { store_.executor->run_all(); });
  ASSERT_TRUE(held.wait_until_blocked());
  EXPECT_TRUE(*store_.cache->delete_block(block(1).hash));
  held.release();
  writer.join();
  EXPECT_EQ(store_.load(block(1)), "deleted");
  EXPECT_EQ(store_.block_bytes(), 0u);
  EXPECT_EQ(store_.pool->in_use_bytes(), 0u);
}

// The image read belongs to a file that was deleted, and saved anew, meanwhile: it is right for the
// caller who asked before, but is not kept for others.
TEST_F(HotWriteTest, ALoadDoesNotKeepWhatWasRemovedMeanwhile) {
  proves("RUL-48");
  store_.save(block(1));
  store_.restart();
  BlockedCalls held = store_.files->plan().block(Op::kRead, "");
  std::thread loader([&] { EXPECT_EQ(store_.load(block(1)), "disk"); });
  ASSERT_TRUE(held.wait_until_blocked());
  EXPECT_TRUE(*store_.cache->delete_block(block(1).hash));
  held.release();
  loader.join();
  EXPECT_EQ(stats().hot_cache_size_bytes, 0u);
  EXPECT_EQ(store_.load(block(1)), "deleted");
}

}  // namespace
}  // namespace kvkeep
