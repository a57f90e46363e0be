// One limit for several owners: what is charged, who leaves, and what an owner may do meanwhile.
#include "kvkeep/hot_budget.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "testing/block_builder.h"
#include "testing/proves.h"
#include "testing/recording_logger.h"

namespace kvkeep {
namespace {

using testing::key_of;
using testing::proves;
using Hashes = std::vector<BlockHash>;

// Gives up what it is asked for, unless it was told to keep it.
class FakeOwner : public HotOwner {
 public:
  bool give_up(const BlockHash& hash, uint64_t, Patience patience) override {
    asked.push_back(hash);
    last_patience = patience;
    if (on_give_up) on_give_up();
    return keeps.count(hash) == 0;
  }
  Result<size_t> clear() override {
    ++clears;
    if (cleared < 0) return Status(Code::kInternal, "broken");
    return static_cast<size_t>(cleared);
  }

  Hashes asked;
  HashSet keeps;
  std::function<void()> on_give_up;
  Patience last_patience = Patience::kQueueWait;
  int clears = 0;
  int cleared = 0;
};

class HotBudgetTest : public ::testing::Test {
 protected:
  HotBudget::PutReport put(const std::shared_ptr<FakeOwner>& owner, uint64_t k, uint64_t bytes,
                           uint64_t generation = 1) {
    return budget_->put(owner, key_of(k), bytes, generation);
  }

  const std::shared_ptr<testing::RecordingLogger> logger_ =
      std::make_shared<testing::RecordingLogger>();
  const std::shared_ptr<HotBudget> budget_ = HotBudget::create(1024, logger_);
  const std::shared_ptr<FakeOwner> a_ = std::make_shared<FakeOwner>();
  std::shared_ptr<FakeOwner> b_ = std::make_shared<FakeOwner>();
};

TEST_F(HotBudgetTest, BeginsEmptyAndNeverBelowZero) {
  proves("BUDGET-01", "BUDGET-08");
  EXPECT_EQ(budget_->max_bytes(), 1024u);
  EXPECT_EQ(budget_->total_bytes(), 0u);
  EXPECT_EQ(budget_->remaining_bytes(), 1024u);
  EXPECT_EQ(budget_->clear_all_owners(), 0u);
  const auto none = HotBudget::create(-5);
  EXPECT_EQ(none->max_bytes(), 0u);
  EXPECT_EQ(none->remaining_bytes(), 0u);
}

TEST_F(HotBudgetTest, APutReplacesAndThenTheLeastRecentOfAnyOwnerLeave) {
  proves("BUDGET-02");
  put(a_, 1, 400);
  put(b_, 1, 400);  // The same key of another owner is another block.
  put(a_, 1, 300, 2);
  EXPECT_EQ(budget_->total_bytes(), 700u);
  const auto report = put(a_, 2, 900);
  EXPECT_TRUE(report.stored);
  EXPECT_EQ(report.victims, (Hashes{key_of(1), key_of(1)}));
  EXPECT_EQ(b_->asked, Hashes{key_of(1)});  // b's was older than a's second one.
  EXPECT_EQ(a_->asked, Hashes{key_of(1)});
  EXPECT_EQ(budget_->total_bytes(), 900u);
}

TEST_F(HotBudgetTest, OneThatIsLargerThanTheLimitIsTheFirstToLeave) {
  proves("BUDGET-03");
  put(a_, 1, 100);
  EXPECT_TRUE(put(b_, 2, 5000).stored);
  EXPECT_EQ(budget_->total_bytes(), 5000u);
  EXPECT_EQ(budget_->remaining_bytes(), 0u);
  EXPECT_EQ(put(a_, 3, 10).victims, Hashes{key_of(2)});
  EXPECT_EQ(budget_->total_bytes(), 10u);
}

TEST_F(HotBudgetTest, TouchedBlocksStayLonger) {
  proves("BUDGET-05");
  put(a_, 1, 400);
  put(a_, 2, 400);
  budget_->touch(a_, key_of(1));
  budget_->touch(a_, key_of(9));
  EXPECT_EQ(put(a_, 3, 400).victims, Hashes{key_of(2)});
}

TEST_F(HotBudgetTest, ForgetsABlockOfTheRightGenerationOrAWholeOwner) {
  proves("BUDGET-06");
  put(a_, 1, 100, 7);
  put(a_, 2, 100);
  put(b_, 1, 100);
  budget_->forget(a_, key_of(1), 6);
  EXPECT_EQ(budget_->total_bytes(), 300u);
  budget_->forget(a_, key_of(1), 7);
  budget_->forget(a_, key_of(1), 7);
  EXPECT_EQ(budget_->total_bytes(), 200u);
  budget_->forget_owner(a_);
  budget_->forget_owner(a_);
  EXPECT_EQ(budget_->total_bytes(), 100u);
  EXPECT_EQ(budget_->share_of(b_).blocks, 1u);
}

TEST_F(HotBudgetTest, ClearsEachOwnerOnce) {
  proves("BUDGET-07");
  a_->cleared = 3;
  b_->cleared = 4;
  put(a_, 1, 1);
  put(a_, 2, 1);
  put(b_, 1, 1);
  EXPECT_EQ(budget_->clear_all_owners(), 7u);
  EXPECT_EQ(a_->clears, 1);
  EXPECT_EQ(b_->clears, 1);
  EXPECT_EQ(budget_->total_bytes(), 0u);
}

TEST_F(HotBudgetTest, AnOwnerThatFailsDoesNotKeepTheOthersFromBeingCleared) {
  proves("BUDGET-09");
  a_->cleared = -1;
  b_->cleared = 4;
  put(a_, 1, 1);
  put(b_, 1, 1);
  EXPECT_EQ(budget_->clear_all_owners(), 4u);
  EXPECT_EQ(logger_->count(LogLevel::kWarning), 1u);
  EXPECT_EQ(budget_->total_bytes(), 1u);
}

TEST_F(HotBudgetTest, ShrinksInOrderOfUseAndLeavesWhatIsProtected) {
  proves("BUDGET-10");
  for (const uint64_t k : {1, 2, 3}) put(k == 2 ? b_ : a_, k, 100);
  EXPECT_EQ(budget_->shrink_to(150, {key_of(1)}), 200u);
  EXPECT_EQ(budget_->total_bytes(), 100u);
  EXPECT_EQ(b_->asked, Hashes{key_of(2)});
  EXPECT_EQ(a_->asked, Hashes{key_of(3)});
  EXPECT_EQ(budget_->shrink_to(-1, {key_of(1)}), 0u);
  EXPECT_EQ(budget_->shrink_to(-1), 100u);
}

TEST_F(HotBudgetTest, OneOwnersShareShrinksAlone) {
  proves("DEF-64");
  put(a_, 1, 100);
  put(b_, 1, 100);
  put(b_, 2, 100);
  EXPECT_EQ(budget_->shrink_owner(b_, 100), 100u);
  EXPECT_EQ(budget_->share_of(a_).bytes, 100u);
  EXPECT_EQ(budget_->share_of(b_).bytes, 100u);
}

TEST_F(HotBudgetTest, WhatHasToStayIsSkippedAndAskedOnce) {
  a_->keeps = {key_of(1)};
  put(a_, 1, 500);
  put(a_, 2, 500);
  EXPECT_EQ(put(a_, 3, 500).victims, Hashes{key_of(2)});
  a_->keeps.insert(key_of(3));
  a_->asked.clear();
  EXPECT_FALSE(put(b_, 4, 500).stored);
  EXPECT_EQ(a_->asked, (Hashes{key_of(1), key_of(3)}));
  EXPECT_EQ(budget_->total_bytes(), 1000u);
}

TEST_F(HotBudgetTest, RoomIsMadeBeforeBytesAreCharged) {
  proves("BUDGET-12");
  put(a_, 1, 1000);
  a_->on_give_up = [this] { EXPECT_LE(budget_->total_bytes(), 1024u); };
  put(b_, 2, 1000);
  EXPECT_EQ(budget_->total_bytes(), 1000u);
}

// The owner puts the block again between the decision and the removal: the new one stays charged.
TEST_F(HotBudgetTest, ALateRemovalDoesNotTakeTheNextGeneration) {
  proves("DEF-63");
  put(a_, 1, 600, 1);
  a_->on_give_up = [this] {
    a_->on_give_up = nullptr;
    budget_->forget(a_, key_of(1), 1);
    put(a_, 1, 300, 2);
  };
  EXPECT_TRUE(put(b_, 2, 500).stored);
  EXPECT_EQ(budget_->share_of(a_).bytes, 300u);
  EXPECT_EQ(budget_->total_bytes(), 800u);
}

TEST_F(HotBudgetTest, AnOwnerThatIsGoneTakesItsBytesWithIt) {
  proves("BUDGET-13");
  put(a_, 1, 100);
  put(b_, 1, 900);
  std::weak_ptr<FakeOwner> watch = b_;
  b_.reset();
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(budget_->total_bytes(), 100u);
  EXPECT_EQ(budget_->remaining_bytes(), 924u);
  EXPECT_TRUE(put(a_, 2, 900).victims.empty());
}

}  // namespace
}  // namespace kvkeep
