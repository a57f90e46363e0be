#include "disk/space_account.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <thread>
#include <vector>

#include "testing/proves.h"

namespace kvkeep {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

TEST(SpaceAccount, APromiseBecomesUseWhenItIsWritten) {
  testing::proves("SAVE-30", "RUL-01");
  SpaceAccount account(1000, 0);
  account.reserve(300);
  EXPECT_EQ(account.used(), 0u);
  EXPECT_EQ(account.tracked(), 300u);
  EXPECT_TRUE(account.begin_write(300));
  EXPECT_EQ(account.used(), 300u);
  EXPECT_EQ(account.tracked(), 300u);
}

TEST(SpaceAccount, AWriteThatDoesNotFitChangesNothing) {
  testing::proves("RUL-01");
  SpaceAccount account(1000, 0);
  account.charge_found(800);
  account.reserve(300);
  EXPECT_FALSE(account.begin_write(300));
  EXPECT_EQ(account.used(), 800u);
  EXPECT_EQ(account.tracked(), 1100u);
  account.release(100);
  EXPECT_TRUE(account.begin_write(300));
  EXPECT_EQ(account.used(), 1000u);
}

TEST(SpaceAccount, ShortfallIsWhatMustGo) {
  SpaceAccount account(1000, 0);
  EXPECT_EQ(account.shortfall(1000), 0u);
  EXPECT_EQ(account.shortfall(1001), 1u);
  account.charge_found(600);
  account.reserve(300);
  EXPECT_EQ(account.shortfall(100), 0u);
  EXPECT_EQ(account.shortfall(150), 50u);
  account.unreserve(300);
  EXPECT_EQ(account.shortfall(150), 0u);
}

TEST(SpaceAccount, HeadroomAndOverheadAreNotForBlocks) {
  testing::proves("RUL-06", "RUL-53");
  SpaceAccount account(1000, 64);
  EXPECT_EQ(account.largest_block(), 936u);
  account.set_overhead(36);
  EXPECT_EQ(account.largest_block(), 900u);
  EXPECT_EQ(account.used(), 36u);
  EXPECT_EQ(account.shortfall(900), 0u);
  EXPECT_EQ(account.shortfall(901), 1u);
  account.reserve(901);
  EXPECT_FALSE(account.begin_write(901));
  account.set_overhead(35);
  EXPECT_TRUE(account.begin_write(901));
}

TEST(SpaceAccount, AServiceFileThatGrowsIsOverhead) {
  SpaceAccount account(1000, 0);
  account.set_overhead(36);
  account.replace_overhead(30, 50);
  EXPECT_EQ(account.used(), 56u);
  EXPECT_EQ(account.largest_block(), 944u);
  account.replace_overhead(70, 0);  // Was not counted yet.
  EXPECT_EQ(account.used(), 0u);
}

TEST(SpaceAccount, ADearerFileIsChargedOnlyIfItFits) {
  testing::proves("RUL-53");
  SpaceAccount account(1000, 0);
  account.reserve(900);
  ASSERT_TRUE(account.begin_write(900));
  EXPECT_FALSE(account.charge_more(101));
  EXPECT_EQ(account.used(), 900u);
  EXPECT_TRUE(account.charge_more(100));
  EXPECT_EQ(account.used(), 1000u);
}

TEST(SpaceAccount, WhatWasFoundIsCountedEvenBeyondTheLimit) {
  SpaceAccount account(1000, 0);
  account.charge_found(5000);
  EXPECT_EQ(account.used(), 5000u);
  EXPECT_EQ(account.shortfall(0), 4000u);
  EXPECT_FALSE(account.charge_more(0));
  EXPECT_EQ(account.limit(), 1000u);
}

TEST(SpaceAccount, DifferencesStopAtZero) {
  SpaceAccount account(100, 200);
  EXPECT_EQ(account.largest_block(), 0u);
  account.release(1);
  account.unreserve(1);
  EXPECT_EQ(account.used(), 0u);
  EXPECT_EQ(account.tracked(), 0u);
  account.set_overhead(kMax);
  EXPECT_EQ(account.largest_block(), 0u);
}

TEST(SpaceAccount, SumsStopAtTheEnd) {
  SpaceAccount account(kMax, 0);
  account.charge_found(kMax - 1);
  account.charge_found(kMax);
  EXPECT_EQ(account.used(), kMax);
  account.reserve(kMax);
  EXPECT_EQ(account.tracked(), kMax);
  EXPECT_EQ(account.shortfall(kMax), 0u);
}

TEST(SpaceAccount, NoByteIsHandedOutTwice) {
  testing::proves("SAVE-30", "DEF-19");
  constexpr uint64_t kLimit = 10'000;
  SpaceAccount account(kLimit, 0);
  std::atomic<uint64_t> held{0};
  std::atomic<bool> overshot{false};
  auto write_and_remove = [&] {
    for (int i = 0; i < 20'000; ++i) {
      const uint64_t bytes = 1 + (i * 7919) % 4000;
      account.reserve(bytes);
      if (!account.begin_write(bytes)) {
        account.unreserve(bytes);
        continue;
      }
      if (held.fetch_add(bytes) + bytes > kLimit || account.used() > kLimit) overshot = true;
      held.fetch_sub(bytes);
      account.release(bytes);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(write_and_remove);
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(overshot);
  EXPECT_EQ(account.tracked(), 0u);
}

TEST(SpaceAccount, TheHeadroomFollowsTheLimit) {
  testing::proves("RUL-53");
  SpaceAccount account(1 << 20, 64);
  EXPECT_EQ(account.headroom(), 2048u);
  EXPECT_EQ(account.usable(), (1u << 20) - 2048);
  account.set_limit(1000);
  EXPECT_EQ(account.headroom(), 64u);
  EXPECT_EQ(account.usable(), 936u);
  for (const uint64_t used : {0, 936, 1 << 20, 1 << 30}) {
    account.set_limit(account.limit_for(used));
    EXPECT_GE(account.usable(), used);
    EXPECT_LE(account.usable(), used + 2);
  }
}

}  // namespace
}  // namespace kvkeep
