#include "daemon/slots/restore_economics.h"

#include <gtest/gtest.h>

#include <limits>

namespace kvkeep::daemon {
namespace {

constexpr uint64_t kTokenBytes = 23040;

// 500 tokens/s; 10ms and 1 GB/s.
RestoreEconomics measured() {
  RestoreEconomics economics;
  economics.note_prefill(1000, 2.0);
  for (int i = 0; i < 4; ++i) {
    economics.note_restore(10'000'000, 434, 0.020);
    economics.note_restore(100'000'000, 4340, 0.110);
  }
  return economics;
}

TEST(RestoreEconomics, WhatIsUnknownIsTried) {
  RestoreEconomics economics;
  EXPECT_TRUE(economics.judge(1, 1'000'000'000).pays);
  economics.note_prefill(1000, 1e-6);
  EXPECT_TRUE(economics.judge(1, 1'000'000'000).pays);
  EXPECT_FALSE(economics.threshold_tokens(kTokenBytes));
  EXPECT_FALSE(economics.judge(0, 0).pays);
  EXPECT_EQ(RestoreEconomics().explain(), "prefill speed unknown, restore speed unknown");
}

TEST(RestoreEconomics, GainAndCostAreThoseMeasured) {
  const RestoreEconomics economics = measured();
  const auto verdict = economics.judge(500, 50'000'000);
  EXPECT_TRUE(verdict.pays);
  EXPECT_NEAR(verdict.gain_seconds, 1.0, 1e-9);
  EXPECT_NEAR(verdict.cost_seconds, 0.060, 1e-6);
  EXPECT_EQ(economics.explain(), "prefill 500 tokens/s, restore 10ms and 953.67MB/s");
}

TEST(RestoreEconomics, ARestoreMustGainAQuarterMoreThanItsCost) {
  const RestoreEconomics economics = measured();
  EXPECT_FALSE(economics.judge(37, 50'000'000).pays);  // 74ms for 60ms.
  EXPECT_TRUE(economics.judge(38, 50'000'000).pays);
}

TEST(RestoreEconomics, TheThresholdIsWhereTheVerdictTurns) {
  const RestoreEconomics economics = measured();
  const auto threshold = economics.threshold_tokens(kTokenBytes);
  ASSERT_TRUE(threshold);
  EXPECT_TRUE(economics.judge(*threshold, *threshold * kTokenBytes).pays);
  EXPECT_FALSE(economics.judge(*threshold - 1, (*threshold - 1) * kTokenBytes).pays);
  EXPECT_FALSE(economics.threshold_tokens(1'000'000'000));  // Computing is always faster.
}

TEST(RestoreEconomics, SmallPrefillsAndNonsenseAreIgnored) {
  RestoreEconomics economics = measured();
  economics.note_prefill(15, 100);
  economics.note_prefill(1000, 0);
  economics.note_prefill(1000, -1);
  economics.note_prefill(1000, std::numeric_limits<double>::infinity());
  economics.note_restore(0, 10, 100);
  economics.note_restore(10, 0, 100);
  economics.note_restore(10, 10, std::numeric_limits<double>::quiet_NaN());
  EXPECT_NEAR(economics.judge(500, 50'000'000).gain_seconds, 1.0, 1e-9);
  EXPECT_NEAR(economics.judge(500, 50'000'000).cost_seconds, 0.060, 1e-6);
}

TEST(RestoreEconomics, OneWildSampleDoesNotTurnAVerdict) {
  RestoreEconomics economics = measured();
  economics.note_prefill(1000, 1e-5);
  economics.note_restore(50'000'000, 2170, 3600);
  EXPECT_TRUE(economics.judge(500, 50'000'000).pays);
  EXPECT_LT(economics.judge(500, 50'000'000).cost_seconds, 0.2);
}

TEST(RestoreEconomics, ALastingChangeIsLearned) {
  RestoreEconomics economics = measured();
  for (int i = 0; i < 60; ++i) {
    economics.note_prefill(1000, 0.2);
    economics.note_restore(10'000'000, 434, 1.0);
    economics.note_restore(100'000'000, 4340, 1.9);
  }
  EXPECT_NEAR(economics.judge(1000, 50'000'000).gain_seconds, 0.2, 0.01);
  EXPECT_NEAR(economics.judge(1000, 50'000'000).cost_seconds, 1.4, 0.05);
}

TEST(RestoreEconomics, RestoresOfOneSizeTellNothingOfAFixedPart) {
  RestoreEconomics economics;
  economics.note_prefill(1000, 2.0);
  economics.note_restore(100'000'000, 4340, 2.0);
  EXPECT_NEAR(economics.judge(434, 10'000'000).cost_seconds, 0.2, 1e-9);
}

TEST(RestoreEconomics, ACostNeverFallsWithTheSize) {
  RestoreEconomics economics;
  economics.note_restore(10'000'000, 434, 0.050);
  economics.note_restore(100'000'000, 4340, 0.040);
  EXPECT_GE(economics.judge(1, 1'000'000'000).cost_seconds, economics.judge(1, 1).cost_seconds);
}

TEST(RestoreEconomics, AnIdeaThatForbidsAllRestoresIsForgotten) {
  RestoreEconomics economics = measured();
  for (int i = 0; i < 50; ++i) economics.note_restore(10'000'000, 434, 50);
  EXPECT_FALSE(economics.judge(500, 10'000'000).pays);
  for (int i = 0; i < 256; ++i) economics.note_prefill(1000, 2.0);
  EXPECT_TRUE(economics.judge(500, 10'000'000).pays);
}

}  // namespace
}  // namespace kvkeep::daemon
