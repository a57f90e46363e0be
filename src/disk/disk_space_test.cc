#include "disk/disk_space.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

#include "testing/faulty_file_system.h"
#include "testing/manual_clock.h"
#include "testing/mem_file_system.h"
#include "testing/proves.h"
#include "testing/recording_logger.h"

namespace kvkeep {
namespace {

using std::chrono::seconds;
using testing::Op;
using testing::proves;

constexpr uint64_t kGiB = 1ull << 30;

TEST(EffectiveLimit, IsWhatIsHeldAndFreeButNotMoreThanConfigured) {
  proves("DISK-01", "DISK-02", "DISK-04", "DISK-05");
  EXPECT_EQ(effective_limit(100 * kGiB, 0, 500 * kGiB, 0), 100 * kGiB);
  EXPECT_EQ(effective_limit(110 * kGiB, 10 * kGiB, 90 * kGiB, 0), 106300440576u);
  EXPECT_EQ(effective_limit(100 * kGiB, 60 * kGiB, 10 * kGiB, 0), 74410308403u);
  EXPECT_EQ(effective_limit(UINT64_MAX / 2, UINT64_MAX, UINT64_MAX, 0), UINT64_MAX / 2);
}

TEST(EffectiveLimit, LeavesAFloorFree) {
  proves("RUL-07");
  EXPECT_EQ(effective_limit(100 * kGiB, 60 * kGiB, 10 * kGiB, 5 * kGiB), 65 * kGiB);
  EXPECT_EQ(effective_limit(100 * kGiB, 1, 10, 12), 0u);
}

class DiskSpaceTest : public ::testing::Test {
 protected:
  void open(uint64_t configured, std::optional<uint64_t> min_free = 0, uint64_t headroom = 0) {
    account_ = std::make_unique<SpaceAccount>(configured, headroom);
    space_ = std::make_unique<DiskSpace>(
        files_, *account_, clock_, logger_,
        DiskSpace::Settings{configured, min_free, seconds(30), seconds(60)});
  }
  // Free bytes as the disk says from now on.
  uint64_t read(uint64_t free) {
    files_.plan().set_space(free);
    space_->drop();
    space_->refresh();
    return space_->effective();
  }
  size_t questions() const { return files_.count(Op::kSpace); }

  testing::FaultyFileSystem files_{std::make_shared<testing::MemFileSystem>()};
  const std::shared_ptr<testing::ManualClock> clock_ = std::make_shared<testing::ManualClock>();
  const std::shared_ptr<testing::RecordingLogger> logger_ =
      std::make_shared<testing::RecordingLogger>();
  std::unique_ptr<SpaceAccount> account_;
  std::unique_ptr<DiskSpace> space_;
};

TEST_F(DiskSpaceTest, AsksOnceInAWhile) {
  proves("DISK-03");
  open(100 * kGiB);
  space_->refresh();
  space_->refresh();
  EXPECT_EQ(questions(), 1u);
  clock_->advance(seconds(31));
  space_->refresh();
  EXPECT_EQ(questions(), 2u);
}

TEST_F(DiskSpaceTest, WhatIsWrittenAndFreedBetweenReadingsDoesNotMoveTheLimit) {
  proves("DISK-09", "DEF-25", "DEF-26");
  open(1'000'000);
  EXPECT_EQ(read(1000), 990u);
  account_->reserve(900);
  EXPECT_EQ(space_->effective(), 990u);
  EXPECT_EQ(space_->free_bytes(), 1000u);  // A promise takes no disk.
  EXPECT_EQ(read(1000), 990u);
  ASSERT_TRUE(account_->begin_write(900));
  EXPECT_EQ(space_->effective(), 990u);
  EXPECT_EQ(space_->free_bytes(), 100u);
  account_->release(400);
  EXPECT_EQ(space_->effective(), 990u);
  EXPECT_EQ(space_->free_bytes(), 500u);
  EXPECT_EQ(read(500), 990u);  // The next reading agrees.
}

TEST_F(DiskSpaceTest, AFailingQuestionLeavesTheConfiguredLimitAndIsRemembered) {
  proves("DISK-07", "DISK-10", "ERR-08", "DEF-27");
  open(100 * kGiB);
  EXPECT_LT(read(50 * kGiB), 100 * kGiB);
  files_.plan().fail_every(Op::kSpace, "", EIO);
  space_->drop();
  const size_t before = questions();
  for (int i = 0; i < 10; ++i) space_->refresh();
  EXPECT_EQ(space_->effective(), 100 * kGiB);
  EXPECT_EQ(account_->limit(), 100 * kGiB);
  EXPECT_EQ(questions(), before + 1);
  EXPECT_EQ(logger_->count("Failed to check disk usage"), 1u);
  clock_->advance(seconds(31));
  space_->refresh();
  EXPECT_EQ(questions(), before + 2);
  EXPECT_EQ(logger_->count("Failed to check disk usage"), 1u);
  clock_->advance(seconds(31));
  space_->refresh();
  EXPECT_EQ(logger_->count("Failed to check disk usage"), 2u);
}

TEST_F(DiskSpaceTest, WarnsOfPressureAtOnceAndThenOnceAMinute) {
  proves("EVICT-11", "DEF-28");
  open(100 * kGiB);
  read(10 * kGiB + kGiB / 2);
  EXPECT_EQ(logger_->count("disk pressure"), 0u);
  read(5 * kGiB);
  EXPECT_EQ(logger_->count("disk nearly full"), 1u);
  EXPECT_TRUE(logger_->contains("disk pressure"));
  EXPECT_TRUE(logger_->contains("4.95GB"));
  EXPECT_TRUE(logger_->contains("100.00GB"));
  clock_->advance(seconds(59));
  read(4 * kGiB);
  EXPECT_EQ(logger_->count("disk pressure"), 1u);
  clock_->advance(seconds(1));
  read(4 * kGiB);
  EXPECT_EQ(logger_->count("disk pressure"), 2u);
}

TEST_F(DiskSpaceTest, TheFloorIsAShareOfTheDiskUnlessGiven) {
  proves("RUL-07");
  open(1ull << 60, std::nullopt);
  space_->refresh();  // A petabyte.
  EXPECT_EQ(space_->min_free_bytes(), 5 * kGiB);
  testing::FaultyFileSystem small(
      std::make_shared<testing::MemFileSystem>(testing::MemFileSystem::Options{.capacity = 1000}));
  DiskSpace space(small, *account_, clock_, logger_,
                  {1000, std::nullopt, seconds(30), seconds(60)});
  space.refresh();
  EXPECT_EQ(space.min_free_bytes(), 50u);
  EXPECT_EQ(space.effective(), 950u);
}

TEST_F(DiskSpaceTest, AReadingThatCostsBlocksIsBelievedTheSecondTime) {
  proves("RUL-08");
  open(1000, 0, 10);
  account_->charge_found(800);
  EXPECT_EQ(read(0), 792u);
  EXPECT_EQ(account_->limit(), 810u);  // What is there may stay, nothing is added.
  EXPECT_EQ(space_->surplus(), 0u);
  clock_->advance(std::chrono::milliseconds(500));
  read(0);
  EXPECT_EQ(space_->surplus(), 0u);
  clock_->advance(std::chrono::milliseconds(500));
  space_->refresh();  // Due without waiting for the snapshot to age.
  EXPECT_EQ(space_->surplus(), 18u);
  EXPECT_EQ(account_->limit(), 810u);
  account_->release(15);
  space_->follow();
  EXPECT_EQ(account_->limit(), 795u);
  account_->release(15);
  space_->follow();
  EXPECT_EQ(account_->limit(), 792u);
  EXPECT_EQ(space_->surplus(), 0u);
}

TEST_F(DiskSpaceTest, AReadingThatWasAMistakeCostsNothing) {
  proves("RUL-08");
  open(1000);
  account_->charge_found(800);
  read(0);
  clock_->advance(seconds(1));
  files_.plan().set_space(500);
  space_->refresh();
  EXPECT_EQ(space_->surplus(), 0u);
  EXPECT_EQ(account_->limit(), 1000u);
}

TEST_F(DiskSpaceTest, AnotherConfiguredLimitIsInForceAtOnce) {
  open(1000);
  account_->charge_found(800);
  space_->set_configured(300);
  EXPECT_EQ(account_->limit(), 300u);
  EXPECT_EQ(space_->effective(), 300u);
  EXPECT_EQ(space_->configured(), 300u);
}

TEST_F(DiskSpaceTest, KnowsThatThereAreNoInodes) {
  open(1000);
  space_->refresh();
  EXPECT_FALSE(space_->out_of_inodes());  // Not counted there.
  files_.plan().set_free_inodes(0);
  read(100);
  EXPECT_TRUE(space_->out_of_inodes());
  files_.plan().set_free_inodes(1);
  read(100);
  EXPECT_FALSE(space_->out_of_inodes());
}

TEST_F(DiskSpaceTest, AnAnswerThatDoesNotComeHoldsNobodyElseUp) {
  open(1000);
  testing::BlockedCalls held = files_.plan().block(Op::kSpace, "");
  std::thread asking([this] { space_->refresh(); });
  ASSERT_TRUE(held.wait_until_blocked());
  space_->refresh();
  EXPECT_EQ(space_->effective(), 1000u);
  held.release();
  asking.join();
}

}  // namespace
}  // namespace kvkeep
