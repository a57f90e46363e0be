#include "index/current_expectation.h"

#include <gtest/gtest.h>

#include <limits>

#include "testing/proves.h"

namespace kvkeep {
namespace {

using testing::proves;
using Types = std::vector<std::string>;

class CurrentExpectationTest : public ::testing::Test {
 protected:
  std::optional<Types> types() { return current_.get()->layer_types; }
  std::optional<double> bits() { return current_.get()->turboquant_bits; }
  void sweep() { current_.mark_swept(*current_.get()); }
  bool replace(const Types& types, std::optional<double> bits = {}) {
    return current_.replace(types, bits);
  }
  CurrentExpectation current_{Expectation{}};
};

TEST_F(CurrentExpectationTest, AdoptsTheFirstListAndNoOther) {
  proves("SIG-04", "SIG-05");
  EXPECT_TRUE(current_.adopt(Types{"ArraysCache", "SizedArraysCache"}));
  EXPECT_EQ(types(), (Types{"ArraysCache", "SizedArraysCache"}));
  EXPECT_FALSE(current_.adopt(Types{"KVCache"}));
  EXPECT_EQ(types(), (Types{"ArraysCache", "SizedArraysCache"}));
}

TEST_F(CurrentExpectationTest, AdoptsNoEmptyOrMalformedList) {
  proves("SIG-06");
  EXPECT_FALSE(current_.adopt({}));
  EXPECT_FALSE(current_.adopt(Types{"KVCache", "\xff"}));
  EXPECT_EQ(types(), std::nullopt);
}

TEST_F(CurrentExpectationTest, ASecondAdoptionLeavesTheSweepDone) {
  proves("SIG-07");
  EXPECT_TRUE(current_.adopt(Types{"KVCache"}));
  EXPECT_FALSE(current_.is_swept());
  sweep();
  EXPECT_FALSE(current_.adopt(Types{"KVCache"}));
  EXPECT_TRUE(current_.is_swept());
}

TEST_F(CurrentExpectationTest, AnotherListReplacesTheOldOneAndAsksForASweep) {
  proves("SIG-08");
  EXPECT_TRUE(replace({"KVCache"}));
  sweep();
  const ExpectationPtr seen = current_.get();
  EXPECT_TRUE(replace({"ArraysCache"}));
  EXPECT_EQ(types(), Types{"ArraysCache"});
  EXPECT_FALSE(current_.is_swept());
  EXPECT_FALSE(current_.is_current(*seen));
  EXPECT_EQ(seen->layer_types, Types{"KVCache"});
}

TEST_F(CurrentExpectationTest, AListThatMeansTheSameReplacesTheOldOneSilently) {
  proves("SIG-09", "SIG-10");
  EXPECT_TRUE(replace({"ArraysCache", "RotatingKVCache"}));
  sweep();
  const ExpectationPtr seen = current_.get();
  for (const Types& same : {Types{"SizedArraysCache", "RotatingKVCache"},
                            Types{"ArraysCache", "PrefillReadyRotatingKVCache"}}) {
    EXPECT_FALSE(replace(same));
    EXPECT_EQ(types(), same);
    EXPECT_TRUE(current_.is_swept());
    EXPECT_TRUE(current_.is_current(*seen));
  }
}

TEST_F(CurrentExpectationTest, AnEmptyOrMalformedListOrDepthChangesNothing) {
  proves("SIG-11");
  EXPECT_TRUE(replace({"TurboQuantKVCache"}, 4));
  sweep();
  EXPECT_FALSE(replace({}, 6));
  EXPECT_FALSE(replace({"\xff"}, 6));
  EXPECT_FALSE(replace({"TurboQuantKVCache"}, std::numeric_limits<double>::infinity()));
  EXPECT_FALSE(replace({"KVCache"}, std::numeric_limits<double>::quiet_NaN()));
  EXPECT_EQ(types(), Types{"TurboQuantKVCache"});
  EXPECT_EQ(bits(), 4.0);
  EXPECT_TRUE(current_.is_swept());
}

TEST_F(CurrentExpectationTest, ListsGoThroughTheAliasFirst) {
  proves("SIG-13", "DEF-54");
  EXPECT_TRUE(current_.adopt(Types{"BufferedRotatingKVCache"}));
  EXPECT_EQ(types(), Types{"RotatingKVCache"});
  EXPECT_FALSE(replace({"BufferedRotatingKVCache"}));
  EXPECT_EQ(types(), Types{"RotatingKVCache"});
}

TEST_F(CurrentExpectationTest, AnotherDepthAloneIsAChange) {
  proves("TQ-07", "TQ-08", "TQ-09");
  EXPECT_TRUE(replace({"TurboQuantKVCache"}, 4));
  sweep();
  EXPECT_FALSE(replace({"TurboQuantKVCache"}, 4));
  EXPECT_TRUE(current_.is_swept());
  EXPECT_TRUE(replace({"TurboQuantKVCache"}, 6));
  EXPECT_EQ(bits(), 6.0);
  EXPECT_FALSE(current_.is_swept());
  sweep();
  EXPECT_TRUE(replace({"TurboQuantKVCache"}));
  EXPECT_EQ(bits(), std::nullopt);
  EXPECT_FALSE(current_.is_swept());
}

TEST_F(CurrentExpectationTest, ASweepForAnOlderExpectationDoesNotCount) {
  EXPECT_TRUE(replace({"KVCache"}));
  const ExpectationPtr old = current_.get();
  EXPECT_TRUE(replace({"ArraysCache"}));
  current_.mark_swept(*old);
  EXPECT_FALSE(current_.is_swept());
  sweep();
  current_.mark_swept(*old);
  EXPECT_TRUE(current_.is_swept());
}

}  // namespace
}  // namespace kvkeep
