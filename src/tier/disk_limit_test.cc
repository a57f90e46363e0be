// The limit that free space leaves, and the calls that make a cache smaller.
#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

#include "testing/proves.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using std::chrono::seconds;
using testing::blk;
using testing::Op;
using testing::proves;
using testing::TestBlock;
using testing::TestStore;

constexpr uint64_t kGiB = 1ull << 30;

class DiskLimitTest : public ::testing::Test {
 protected:
  void open_for_blocks(uint64_t count) {
    TestStore measure;
    measure.open();
    measure.save_and_write(blk(0));
    bytes_ = measure.file_bytes(blk(0));
    store_.options.max_size_bytes = count * bytes_ + measure.own_bytes;
    store_.options.quarantine_max_bytes = 0;
    store_.options.min_free_bytes = 0;
    store_.open();
  }
  // A second apart, written at once.
  void save(uint64_t first, uint64_t last) {
    for (uint64_t k = first; k <= last; ++k) {
      store_.save_and_write(blk(k));
      store_.clock->advance(seconds(1));
    }
  }
  std::string present(uint64_t first, uint64_t last) {
    std::string all;
    for (uint64_t k = first; k <= last; ++k) {
      if (store_.cache->has_block(blk(k).hash)) all += std::to_string(k) + " ";
    }
    return all;
  }
  void set_limit(uint64_t block_bytes) {
    store_.cache->set_configured_max_size(block_bytes + store_.own_bytes);
  }
  // A store of `count` blocks that finds, when it opens, that others have filled the disk so far
  // that only `left` blocks may stay.
  void reopen_on_full_disk(uint64_t count, uint64_t left) {
    open_for_blocks(10'000);
    save(1, count);
    store_.close();
    store_.options.min_free_bytes = (count - left) * bytes_ - bytes_ / 2;
    store_.files->plan().set_space(0);
    store_.open();
  }
  CacheStats stats() { return store_.cache->stats(); }

  TestStore store_;
  uint64_t bytes_ = 0;
};

TEST_F(DiskLimitTest, TheLimitFollowsFreeSpace) {
  proves("DISK-03", "DISK-06", "STAT-04");
  store_.options.max_size_bytes = 200 * kGiB;
  store_.options.min_free_bytes = 0;
  store_.files->plan().set_space(500 * kGiB);
  store_.open();
  EXPECT_EQ(store_.cache->max_size(), 200 * kGiB);
  store_.files->plan().set_space(50 * kGiB);
  store_.clock->advance(seconds(31));
  store_.files->clear_record();
  EXPECT_LT(store_.cache->max_size(), 50 * kGiB);
  EXPECT_GT(store_.cache->max_size(), 49 * kGiB);
  EXPECT_EQ(store_.files->count(Op::kSpace), 1u);
  EXPECT_EQ(store_.cache->configured_max_size(), 200 * kGiB);
  EXPECT_EQ(stats().max_size_bytes, store_.cache->max_size());
  EXPECT_EQ(stats().configured_max_size_bytes, 200 * kGiB);
  EXPECT_EQ(stats().free_bytes, 50 * kGiB);
  store_.clock->advance(seconds(31));
  store_.cache->max_size();
  EXPECT_EQ(store_.files->count(Op::kSpace), 2u);
}

TEST_F(DiskLimitTest, ASaveAsksTheDiskNothing) {
  open_for_blocks(10);
  store_.clock->advance(seconds(31));
  store_.files->clear_record();
  ASSERT_EQ(store_.save(blk(1)), "queued");
  EXPECT_TRUE(store_.files->calls().empty());
  store_.executor->run_all();
  EXPECT_EQ(store_.files->count(Op::kSpace), 1u);  // The writer did.
}

TEST_F(DiskLimitTest, UtilisationIsOfTheEffectiveLimit) {
  proves("STAT-05");
  EXPECT_EQ(CacheStats().utilization(), 0);
  open_for_blocks(100);
  save(1, 50);
  store_.files->plan().set_space(10 * bytes_);
  store_.clock->advance(seconds(31));
  store_.cache->max_size();
  EXPECT_LT(stats().max_size_bytes, stats().configured_max_size_bytes);
  EXPECT_LE(stats().utilization(), 1);
  EXPECT_GT(stats().utilization(), 0.8);
}

TEST_F(DiskLimitTest, AFullDiskBoundsTheStore) {
  proves("RUL-07");
  open_for_blocks(100);
  store_.files->plan().set_space(3 * bytes_ + bytes_ / 2);
  store_.clock->advance(seconds(31));
  save(1, 6);
  EXPECT_EQ(present(1, 6), "4 5 6 ");
  EXPECT_EQ(store_.save(testing::mib(9, 1)), "too_large");
  EXPECT_EQ(stats().save_refused[static_cast<size_t>(Refusal::kTooLarge)], 1u);
}

TEST_F(DiskLimitTest, AFullDiskAtOpenIsBelievedTheSecondTime) {
  proves("RUL-08");
  reopen_on_full_disk(8, 3);
  EXPECT_EQ(store_.cache->size(), 8u);
  ASSERT_EQ(store_.save(blk(9)), "queued");  // Grows no further meanwhile.
  store_.executor->run_all();
  EXPECT_EQ(present(1, 9), "2 3 4 5 6 7 8 9 ");
  store_.clock->advance(seconds(1));
  ASSERT_EQ(store_.save(blk(10)), "queued");
  store_.files->plan().set_space(bytes_);  // Of the block that left for it.
  store_.executor->run_all();
  EXPECT_EQ(present(1, 10), "8 9 10 ");
  EXPECT_TRUE(store_.logger->contains("the disk fills up"));
}

TEST_F(DiskLimitTest, AMomentOfFullDiskCostsNothing) {
  proves("RUL-08");
  reopen_on_full_disk(8, 3);
  store_.files->plan().set_space(1000 * bytes_);
  store_.clock->advance(seconds(1));
  store_.cache->max_size();
  save(9, 10);
  EXPECT_EQ(store_.cache->size(), 10u);
}

TEST_F(DiskLimitTest, AThousandFilesLeaveAtATimeAndOthersAreWrittenBetween) {
  proves("RUL-08");
  TestStore store;
  store.options.quarantine_max_bytes = 0;
  store.options.min_free_bytes = 0;
  store.open();
  const uint64_t bytes = 4096;
  for (uint64_t k = 0; k < 2500; ++k) {
    ASSERT_EQ(store.save(testing::sized(k, bytes)), "queued");
    store.executor->run_all();
  }
  store.close();
  store.options.min_free_bytes = 2400 * bytes;
  store.files->plan().set_space(0);
  store.open();
  store.clock->advance(seconds(1));
  ASSERT_EQ(store.save(testing::sized(3000, bytes)), "queued");
  ASSERT_EQ(store.save(testing::sized(3001, bytes)), "queued");
  const auto evictions = [&store] { return store.cache->stats().evictions; };
  store.executor->run(1);
  EXPECT_GE(evictions(), 1000u);
  EXPECT_LE(evictions(), 1003u);  // One step, and room for the block.
  EXPECT_EQ(store.load(testing::sized(3000, bytes)), "disk");
  store.executor->run(1);
  EXPECT_LE(evictions(), 2006u);
  EXPECT_EQ(store.load(testing::sized(3001, bytes)), "disk");
  store.executor->run_all();
  EXPECT_GE(evictions(), 2390u);
  EXPECT_LE(store.block_bytes(), 110 * bytes);
}

TEST_F(DiskLimitTest, EnforcingALimitThatIsKeptDoesNothing) {
  proves("EVICT-01");
  open_for_blocks(3);
  save(1, 3);
  EXPECT_EQ(store_.cache->enforce_size_limit(), 0u);
  EXPECT_EQ(present(1, 3), "1 2 3 ");
}

TEST_F(DiskLimitTest, EnforcingEvictsDownToNinetyPercent) {
  proves("EVICT-02");
  open_for_blocks(40);
  save(1, 40);
  store_.files->plan().fail_every(Op::kUnlink, store_.path(blk(1)), EACCES);
  set_limit(10 * bytes_ + bytes_ / 2);
  EXPECT_EQ(store_.cache->enforce_size_limit(), 31 * bytes_);
  EXPECT_EQ(present(1, 40), "1 33 34 35 36 37 38 39 40 ");
  EXPECT_LE(store_.cache->tracked_size(), store_.cache->max_size() * 9 / 10);
  EXPECT_EQ(stats().evictions, 31u);
}

TEST_F(DiskLimitTest, ASaveWorksOffALargeBacklogPieceByPiece) {
  proves("EVICT-06");
  open_for_blocks(48);
  save(1, 48);
  set_limit(bytes_);
  ASSERT_EQ(store_.save(blk(49)), "queued");
  EXPECT_EQ(stats().evictions, 32u);
  EXPECT_EQ(present(1, 49), "33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 ");
  EXPECT_TRUE(store_.logger->contains("is left to the writer and later saves"));
  ASSERT_EQ(store_.save(blk(50)), "queued");
  EXPECT_EQ(present(33, 50), "50 ");
  EXPECT_EQ(store_.logger->lines().back().level, LogLevel::kDebug);
}

TEST_F(DiskLimitTest, RoomIsMadeForAnUnknownBlockWithFewUnlinks) {
  proves("EVICT-07", "IDX-10");
  store_.options.quarantine_max_bytes = 0;
  store_.open();
  const auto block = [](uint64_t k) { return testing::sized(100 + k, 2000); };
  const auto left = [&] {
    std::string all;
    for (uint64_t k = 0; k < 6; ++k) {
      if (store_.cache->has_block(block(k).hash)) all += std::to_string(k);
    }
    return all;
  };
  for (uint64_t k = 0; k < 6; ++k) {
    store_.save_and_write(block(k));
    store_.clock->advance(seconds(1));
  }
  set_limit((1 << 20) + 20);
  EvictionReport report = store_.cache->make_room(1 << 20, 2, false);
  EXPECT_EQ(report.evicted, 2u);
  EXPECT_GT(report.deferred_bytes, 0u);
  EXPECT_EQ(left(), "2345");
  for (const char* expected : {"345", "45"}) {
    store_.cache->make_room(1 << 20, 1, false);
    EXPECT_EQ(left(), expected);
  }
  report = store_.cache->make_room(1 << 20, 0, true);
  EXPECT_EQ(report.evicted, 2u);
  EXPECT_EQ(report.deferred_bytes, 0u);
}

TEST_F(DiskLimitTest, BlocksThatWaitAreGivenUpWithoutTouchingFiles) {
  proves("IDX-09");
  open_for_blocks(5);
  for (uint64_t k = 1; k <= 5; ++k) ASSERT_EQ(store_.save(blk(k)), "queued");
  store_.files->clear_record();
  const EvictionReport report =
      store_.cache->make_room(5 * bytes_ - 3000 * bytes_ / 1024, {}, true);
  EXPECT_EQ(report.evicted, 3u);
  EXPECT_EQ(present(1, 5), "4 5 ");
  EXPECT_EQ(store_.block_bytes(), 2 * bytes_);
  EXPECT_TRUE(store_.files->calls().empty());
}

TEST_F(DiskLimitTest, RoomForMoreThanTheLimitLeavesNinetyPercent) {
  proves("EVICT-04");
  open_for_blocks(20);
  save(1, 20);
  const EvictionReport report = store_.cache->make_room(21 * bytes_ + 4096, {}, true);
  EXPECT_GE(report.evicted, 2u);
  EXPECT_LE(report.evicted, 3u);
  EXPECT_EQ(report.failed, 0u);
}

TEST_F(DiskLimitTest, FailedUnlinksAreReportedAndBounded) {
  open_for_blocks(6);
  save(1, 6);
  store_.files->plan().fail_every(Op::kUnlink, "", EACCES);
  const EvictionReport report = store_.cache->make_room(3 * bytes_, 2, false);
  EXPECT_EQ(report.evicted, 0u);
  EXPECT_EQ(report.failed, 2u);
  EXPECT_EQ(report.deferred_bytes, 3 * bytes_);
  EXPECT_EQ(present(1, 6), "1 2 3 4 5 6 ");
}

TEST_F(DiskLimitTest, ClearRemovesEverythingOfEveryKind) {
  proves("CLEAR-01", "CLEAR-02", "CLEAR-03", "DEF-60");
  open_for_blocks(10);
  EXPECT_EQ(*store_.cache->clear(), 0u);
  TestBlock other = blk(1);
  other.input.model_name = "other";
  store_.save_and_write(other);
  store_.save_and_write(blk(2));
  store_.options.model_name = "m";
  store_.restart();
  EXPECT_EQ(stats().incompatible_files, 1u);
  EXPECT_EQ(*store_.cache->clear(), 2u);
  EXPECT_EQ(store_.cache->tracked_count(), 0u);
  EXPECT_EQ(store_.block_bytes(), 0u);
  ASSERT_EQ(store_.save(blk(3)), "queued");
  EXPECT_EQ(*store_.cache->clear(), 1u);
  EXPECT_EQ(store_.load(blk(3)), "deleted");
  store_.restart();
  EXPECT_EQ(store_.cache->tracked_count(), 0u);
}

TEST_F(DiskLimitTest, ClearHoldsNoLoadUpAndKeepsWhatItCannotRemove) {
  proves("DEF-60", "DEF-30");
  open_for_blocks(10);
  save(1, 2);
  auto held = store_.files->plan().block(Op::kUnlink, store_.path(blk(1)));
  store_.files->plan().fail_every(Op::kUnlink, store_.path(blk(1)), EACCES);
  std::thread clearing([this] {
    const auto cleared = store_.cache->clear();
    EXPECT_EQ(cleared.status().code(), Code::kUnavailable);
    EXPECT_EQ(cleared.status().sys_errno(), EACCES);
  });
  ASSERT_TRUE(held.wait_until_blocked());
  save(3, 3);
  EXPECT_EQ(store_.load(blk(3)), "disk");
  held.release();
  clearing.join();
  EXPECT_EQ(store_.load(blk(1)), "deleted");
  EXPECT_EQ(stats().incompatible_files, 1u);
  EXPECT_EQ(store_.cache->tracked_count(), 2u);
}

TEST_F(DiskLimitTest, AClosedCacheMakesNoRoom) {
  open_for_blocks(2);
  save(1, 2);
  ASSERT_TRUE(store_.cache->close(std::nullopt).ok());
  store_.files->clear_record();
  set_limit(1);
  EXPECT_EQ(store_.cache->enforce_size_limit(), 0u);
  EXPECT_EQ(store_.cache->make_room(bytes_, {}, true).evicted, 0u);
  EXPECT_EQ(store_.cache->clear().status().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(store_.files->calls().empty());
}

// Whatever is on the disk is known before the first save.
TEST_F(DiskLimitTest, OpenCountsTheWholeDirectoryFirst) {
  proves("RUL-04");
  open_for_blocks(10);
  save(1, 3);
  store_.close();
  store_.disk->truncate(store_.path(blk(2)), 100);  // Its header cannot be read any more.
  store_.open();
  EXPECT_EQ(store_.block_bytes(), 2 * bytes_ + 100);
  EXPECT_FALSE(store_.cache->has_block(blk(2).hash));
  ASSERT_EQ(store_.save(blk(2)), "queued");
  EXPECT_EQ(store_.save(blk(1)), "present");
  store_.executor->run_all();
  EXPECT_EQ(store_.load(blk(2)), "disk");
  EXPECT_EQ(store_.block_bytes(), 3 * bytes_);
}

}  // namespace
}  // namespace kvkeep
