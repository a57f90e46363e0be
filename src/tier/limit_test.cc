// The limit is a limit: after every file operation, whatever is saved, and what is evicted for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "base/bytes.h"
#include "testing/proves.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using testing::blk;
using testing::Op;
using testing::proves;
using testing::TestBlock;
using testing::TestStore;

// The in-memory disk counts single bytes and its directories cost nothing: n blocks fit exactly.
class LimitTest : public ::testing::Test {
 protected:
  void open_for_blocks(uint64_t count) {
    TestStore measure;
    measure.open();
    measure.save_and_write(blk(0));
    bytes_ = measure.file_bytes(blk(0));
    store_.options.max_size_bytes = count * bytes_ + measure.own_bytes;
    store_.options.quarantine_max_bytes = 0;
    store_.open();
  }
  CacheStats stats() { return store_.cache->stats(); }
  std::string loads(uint64_t first, uint64_t last) {
    std::string all;
    for (uint64_t k = first; k <= last; ++k) all += store_.load(blk(k)) + " ";
    return all;
  }

  TestStore store_;
  uint64_t bytes_ = 0;
};

TEST_F(LimitTest, TheLeastRecentlyUsedGoesFirst) {
  proves("EVICT-03", "EVICT-04", "EVICT-10", "SAVE-21");
  open_for_blocks(3);
  for (uint64_t k = 1; k <= 3; ++k) store_.save_and_write(blk(k));
  EXPECT_EQ(store_.load(blk(1)), "disk");
  store_.save_and_write(blk(4));
  EXPECT_EQ(loads(1, 4), "disk evicted disk disk ");
  EXPECT_EQ(stats().evictions, 1u);
  EXPECT_EQ(store_.block_bytes(), 3 * bytes_);
}

TEST_F(LimitTest, TheLimitHoldsAfterEveryFileOperation) {
  proves("RUL-01", "RUL-05", "SAVE-30", "DEF-19");
  const uint64_t limit = 4ull << 20;
  uint64_t most = 0;  // Outlives the store, whose last operations are watched too.
  TestStore store({.block_bytes = 4096, .directory_bytes = 4096});
  store.options.max_size_bytes = limit;
  store.disk->on_operation([&](const testing::Operation&) {
    most = std::max(most, store.disk->allocated_bytes());
    ASSERT_LE(store.disk->allocated_bytes(), limit);
  });
  store.open();
  const uint64_t blocks = 8 * limit / (64 << 10);
  for (uint64_t k = 0; k < blocks; ++k) {
    ASSERT_EQ(store.save(blk(k)), "queued");
    if (k % 3 == 0) store.executor->run(1);  // The writer lags behind.
    if (k % 7 == 0) store.executor->run_all();
  }
  store.executor->run_all();
  EXPECT_LE(most, limit);
  EXPECT_GE(store.disk->allocated_bytes(), limit * 8 / 10);
  EXPECT_EQ(store.cache->stats().allocated_bytes, store.disk->allocated_bytes());
  uint64_t right = 0;
  for (uint64_t k = 0; k < blocks; ++k) right += store.load(blk(k)) == "disk";
  EXPECT_GE(right * (64 << 10), limit * 7 / 10);
  EXPECT_EQ(right, store.cache->size());
}

TEST_F(LimitTest, TrackedSizeStaysAtTheLimitWhileTheWriterStandsStill) {
  proves("EVICT-09", "EVICT-12", "SAVE-27", "LIFE-06", "DEF-05");
  open_for_blocks(3);
  for (uint64_t k = 1; k <= 10; ++k) {
    ASSERT_EQ(store_.save(blk(k)), "queued");
    EXPECT_LE(store_.block_bytes(), 3 * bytes_);
  }
  EXPECT_EQ(store_.load(blk(1)), "evicted");
  ASSERT_EQ(store_.save(blk(1)), "queued");  // Not a hit on doomed data.
  store_.executor->run_all();
  EXPECT_EQ(loads(8, 10), "evicted disk disk ");
  EXPECT_EQ(store_.load(blk(1)), "disk");
  EXPECT_EQ(stats().saves_persisted, 3u);
  EXPECT_EQ(stats().writes_cancelled, 8u);
}

TEST_F(LimitTest, ABlockLargerThanTheLimitIsRefusedAndEvictsNothing) {
  proves("SAVE-29", "RUL-30", "DEF-29");
  open_for_blocks(2);
  store_.save_and_write(blk(1));
  EXPECT_EQ(store_.save(testing::mib(2, 1)), "too_large");
  EXPECT_EQ(store_.load(blk(1)), "disk");
  EXPECT_EQ(stats().refused(Refusal::kTooLarge), 1u);
}

TEST_F(LimitTest, ASaverUnlinksABoundedNumberOfFiles) {
  proves("EVICT-06", "EVICT-08");
  open_for_blocks(40);
  for (uint64_t k = 0; k < 40; ++k) store_.save_and_write(testing::sized(100 + k, bytes_));
  store_.options.max_inline_unlinks_per_save = 2;
  store_.restart();
  store_.files->clear_record();
  TestBlock big = testing::sized(1, 10 * bytes_);
  ASSERT_EQ(store_.save(big), "queued");
  EXPECT_EQ(store_.files->count(Op::kUnlink), 2u);
  store_.executor->run_all();  // The writer does the rest before it writes a byte.
  EXPECT_EQ(store_.load(big), "disk");
  EXPECT_LE(store_.block_bytes(), 40 * bytes_);
}

TEST_F(LimitTest, AFileThatCannotBeUnlinkedIsLeftAloneForAWhile) {
  proves("ERR-06", "ERR-07", "DEF-33");
  open_for_blocks(2);
  for (uint64_t k = 1; k <= 2; ++k) store_.save_and_write(blk(k));
  store_.files->plan().fail_every(Op::kUnlink, store_.path(blk(1)), EACCES);
  store_.save_and_write(blk(3));
  EXPECT_EQ(loads(1, 3), "disk evicted disk ");
  EXPECT_EQ(stats().evict_unlink_failures, 1u);
  EXPECT_EQ(stats().evictions, 1u);
  store_.files->plan().clear();
  store_.disk->remove_tree(store_.path(blk(3)));  // Already gone: as good as evicted.
  store_.save_and_write(blk(4));
  store_.save_and_write(blk(5));
  EXPECT_LE(store_.block_bytes(), 2 * bytes_);
}

TEST_F(LimitTest, WhereNothingCanGoTheBlockIsDroppedByReason) {
  open_for_blocks(1);
  store_.save_and_write(blk(1));
  store_.files->plan().fail_every(Op::kUnlink, "", EACCES);
  ASSERT_EQ(store_.save(blk(2)), "queued");
  store_.executor->run_all();
  EXPECT_EQ(store_.load(blk(2)), "evicted");
  EXPECT_EQ(stats().refused(Refusal::kNoSpace), 1u);
  EXPECT_EQ(store_.load(blk(1)), "disk");
  EXPECT_EQ(store_.block_bytes(), bytes_);
}

TEST_F(LimitTest, FilesOfOtherModelsCountAndAreEvicted) {
  proves("EVICT-05", "SAVE-22", "SCAN-02", "SCAN-03");
  open_for_blocks(2);
  TestBlock other = blk(1);
  other.input.model_name = "other";
  store_.save_and_write(other);
  store_.save_and_write(blk(2));
  store_.options.model_name = "m";
  store_.restart();
  EXPECT_EQ(store_.load(other), "model");
  EXPECT_EQ(store_.load(blk(2)), "disk");
  EXPECT_EQ(stats().incompatible_files, 1u);
  store_.save_and_write(blk(3));
  EXPECT_EQ(stats().incompatible_files, 0u);
  EXPECT_EQ(loads(2, 3), "disk disk ");
}

TEST_F(LimitTest, AReplacedFileStaysChargedUntilTheRename) {
  proves("RUL-52");
  open_for_blocks(3);
  TestBlock other = blk(1);
  other.input.model_name = "other";
  store_.save_and_write(other);
  store_.options.model_name = "m";
  store_.restart();
  ASSERT_EQ(store_.save(blk(1)), "queued");
  EXPECT_EQ(store_.block_bytes(), 2 * bytes_);
  store_.files->plan().fail(Op::kRename, "", EIO);
  store_.executor->run_all();
  EXPECT_EQ(store_.load(blk(1)), "model");  // As it was.
  ASSERT_EQ(store_.save(blk(1)), "queued");
  store_.executor->run_all();
  EXPECT_EQ(store_.load(blk(1)), "disk");
  EXPECT_EQ(store_.block_bytes(), bytes_);
}

TEST_F(LimitTest, AFullStoreCanReplaceItsOnlyFile) {
  open_for_blocks(1);
  store_.save_and_write(blk(1));
  store_.options.identity = {{"adapter", "a"}};
  store_.options.max_size_bytes += 1024;  // For the identity, in the file and in namespaces.json.
  store_.restart();
  EXPECT_EQ(store_.load(blk(1)), "identity");
  ASSERT_EQ(store_.save(blk(1)), "queued");
  store_.executor->run_all();
  EXPECT_EQ(store_.load(blk(1)), "disk");
}

TEST_F(LimitTest, AStoreOverItsLimitIsBroughtUnderItAtOpen) {
  proves("SCAN-08", "RUL-08");
  open_for_blocks(5);
  for (uint64_t k = 1; k <= 5; ++k) {
    store_.save_and_write(blk(k));
    store_.clock->advance(std::chrono::seconds(1));
  }
  store_.options.max_size_bytes = 2 * bytes_ + 1 + store_.own_bytes;
  store_.restart();
  EXPECT_EQ(store_.cache->size(), 2u);
  EXPECT_EQ(loads(3, 5), "evicted disk disk ");
  EXPECT_TRUE(store_.logger->contains("over its limit"));
  EXPECT_EQ(stats().evictions, 3u);
}

TEST_F(LimitTest, TheQuarantineIsInsideTheLimit) {
  proves("RUL-06");
  open_for_blocks(3);
  store_.options.quarantine_max_bytes = 2 * bytes_;
  store_.restart();
  for (uint64_t k = 1; k <= 3; ++k) store_.save_and_write(blk(k));
  store_.disk->flip_bit(store_.path(blk(1)), 80'000);
  EXPECT_EQ(store_.load(blk(1)), "damaged");
  EXPECT_EQ(stats().quarantine_bytes, bytes_);
  EXPECT_EQ(store_.block_bytes(), 3 * bytes_);
  store_.save_and_write(blk(4));
  EXPECT_EQ(store_.block_bytes(), 3 * bytes_);
  EXPECT_LE(store_.disk->allocated_bytes(), 3 * bytes_ + 4096);  // Owner file and tag.
}

TEST_F(LimitTest, TooSmallALimitIsRefusedAtOpen) {
  TestStore store({.block_bytes = 4096, .directory_bytes = 4096});
  store.options.max_size_bytes = 64 << 10;
  const auto opened = store.try_open();
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(opened.status().message().rfind("max_size_bytes", 0), 0u) << opened.status().message();
}

}  // namespace
}  // namespace kvkeep
