// The disk is full although the limit is not reached.
#include <gtest/gtest.h>

#include <cerrno>

#include "testing/proves.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using std::chrono::seconds;
using testing::blk;
using testing::Op;
using testing::proves;
using testing::TestStore;

class FullDiskTest : public ::testing::Test {
 protected:
  FullDiskTest() {
    store_.options.min_free_bytes = 0;
    store_.open();
  }
  void fill(uint64_t count) {
    for (uint64_t k = 1; k <= count; ++k) {
      store_.save_and_write(blk(k));
      store_.clock->advance(seconds(1));
    }
  }
  void write(uint64_t k) {
    ASSERT_EQ(store_.save(blk(k)), "queued");
    store_.executor->run_all();
  }
  CacheStats stats() { return store_.cache->stats(); }

  TestStore store_;
};

TEST_F(FullDiskTest, MakesRoomAndTriesOnceMore) {
  proves("RUL-09", "DISK-08");
  fill(20);
  store_.files->plan().fail(Op::kAppend, "", ENOSPC);
  store_.files->clear_record();
  write(21);
  EXPECT_EQ(store_.load(blk(21)), "disk");
  EXPECT_EQ(stats().evictions, 8u);
  EXPECT_EQ(store_.load(blk(8)), "evicted");
  EXPECT_EQ(store_.load(blk(9)), "disk");
  EXPECT_GE(store_.files->count(Op::kSpace), 1u);  // Within the snapshot's time.
  EXPECT_EQ(stats().errors, 0u);
}

TEST_F(FullDiskTest, MakesRoomForABlockThatTakesMoreThanEight) {
  proves("RUL-09");
  for (uint64_t k = 1; k <= 40; ++k) store_.save_and_write(testing::sized(100 + k, 4096));
  store_.files->plan().fail(Op::kAppend, "", ENOSPC);
  const auto large = testing::sized(1, 20 * 4096);
  store_.save_and_write(large);
  EXPECT_EQ(store_.load(large), "disk");
  EXPECT_EQ(stats().evictions, 20u);
}

TEST_F(FullDiskTest, MakesRoomForAHundredthOfWhatIsTracked) {
  proves("RUL-09");
  for (uint64_t k = 1; k <= 1000; ++k) {
    ASSERT_EQ(store_.save(testing::sized(100 + k, 4096)), "queued");
    store_.executor->run_all();
  }
  store_.files->plan().fail(Op::kAppend, "", ENOSPC);
  store_.save_and_write(testing::sized(1, 4096));
  EXPECT_GE(stats().evictions, 10u);
  EXPECT_LE(stats().evictions, 11u);
}

TEST_F(FullDiskTest, TellsBytesInodesAndQuotaApart) {
  proves("RUL-09", "ERR-02");
  struct Case {
    int error;
    std::optional<uint64_t> inodes;
    Refusal reason;
  };
  for (const Case& c : {Case{ENOSPC, std::nullopt, Refusal::kNoSpace},
                        Case{ENOSPC, 0, Refusal::kNoInodes}, Case{EDQUOT, 0, Refusal::kQuota}}) {
    store_.logger->clear();
    const uint64_t before = stats().refused(c.reason);
    const uint64_t drops = stats().ssd_write_drops;
    store_.files->plan().set_free_inodes(c.inodes);
    store_.files->plan().fail_every(Op::kCreate, "", c.error);
    write(1);
    store_.files->plan().clear();
    EXPECT_EQ(store_.load(blk(1)), "absent");
    EXPECT_EQ(stats().refused(c.reason), before + 1) << name_of(c.reason);
    EXPECT_EQ(stats().ssd_write_drops, drops + 1);
    EXPECT_EQ(store_.logger->count("SSD cache disk full"), 1u);
    EXPECT_TRUE(store_.logger->contains(blk(1).hash.short_hex()));
    EXPECT_TRUE(store_.logger->contains("background"));
    store_.clock->advance(seconds(61));
  }
}

TEST_F(FullDiskTest, AnInlineWriteSaysSo) {
  proves("ERR-02");
  store_.close();
  store_.options.pending_cap = 1;
  store_.open();
  ASSERT_EQ(store_.save(blk(1)), "queued");
  store_.files->plan().fail_every(Op::kCreate, "", EDQUOT);
  EXPECT_EQ(store_.save(blk(2)), "quota");
  EXPECT_EQ(store_.logger->count("SSD cache disk full"), 1u);
  EXPECT_TRUE(store_.logger->contains("inline-fallback"));
  EXPECT_EQ(stats().refused(Refusal::kQuota), 1u);
}

TEST_F(FullDiskTest, GivesBlocksUpAtMostOnceASecond) {
  proves("RUL-09");
  fill(40);
  store_.files->plan().fail_every(Op::kAppend, "", ENOSPC);
  write(41);
  EXPECT_EQ(stats().evictions, 8u);
  store_.clock->advance(std::chrono::milliseconds(999));
  write(42);
  EXPECT_EQ(stats().evictions, 8u);
  EXPECT_EQ(stats().refused(Refusal::kNoSpace), 2u);
  store_.clock->advance(std::chrono::milliseconds(1));
  write(43);
  EXPECT_EQ(stats().evictions, 16u);
}

TEST_F(FullDiskTest, StopsGivingBlocksUpWhereNothingBecomesFree) {
  proves("RUL-09");
  fill(60);
  store_.files->plan().set_space(1ull << 41);  // What is removed frees nothing.
  store_.files->plan().fail_every(Op::kAppend, "", ENOSPC);
  for (uint64_t k = 61; k <= 70; ++k) {
    write(k);
    store_.clock->advance(seconds(2));
  }
  EXPECT_EQ(stats().evictions, 24u);
  store_.files->plan().set_space((1ull << 41) + 1);  // Somebody freed a byte.
  write(71);
  EXPECT_EQ(stats().evictions, 32u);
}

TEST_F(FullDiskTest, TriesAgainAfterAMinute) {
  proves("RUL-09");
  fill(60);
  store_.files->plan().set_space(1ull << 41);
  store_.files->plan().fail_every(Op::kAppend, "", ENOSPC);
  for (uint64_t k = 61; k <= 63; ++k) {
    write(k);
    store_.clock->advance(seconds(2));
  }
  EXPECT_EQ(stats().evictions, 24u);
  store_.clock->advance(seconds(57));
  write(64);
  EXPECT_EQ(stats().evictions, 24u);
  store_.clock->advance(seconds(1));
  write(65);
  EXPECT_EQ(stats().evictions, 32u);
}

TEST_F(FullDiskTest, BytesAreGivenBackWhicheverWayItEnds) {
  fill(10);
  const uint64_t bytes = store_.file_bytes(blk(10));
  store_.files->plan().fail_every(Op::kAppend, "", ENOSPC);
  write(11);
  EXPECT_EQ(store_.block_bytes(), 2 * bytes);
  store_.files->plan().clear();
  write(11);
  EXPECT_EQ(store_.block_bytes(), 3 * bytes);
  EXPECT_EQ(stats().allocated_bytes, store_.cache->tracked_size());
}

}  // namespace
}  // namespace kvkeep
