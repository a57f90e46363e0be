#include "tier/write_queue.h"

#include <gtest/gtest.h>

#include <thread>

#include "testing/manual_clock.h"
#include "testing/proves.h"

namespace kvkeep {
namespace {

BlockHash key(uint32_t n) { return *BlockHash::from_bytes(std::as_bytes(std::span(&n, 1))); }

class WriteQueueTest : public ::testing::Test {
 protected:
  const std::shared_ptr<testing::ManualClock> clock_ = std::make_shared<testing::ManualClock>();
  WriteQueue queue_{2, 100, clock_};
};

TEST_F(WriteQueueTest, GivesBlocksInTheOrderTheyWerePushed) {
  testing::proves("WRITER-01");
  const auto first = queue_.take_ticket(10, {}, WriteQueue::Entrance::kSaver);
  const auto second = queue_.take_ticket(10, {}, WriteQueue::Entrance::kSaver);
  queue_.push({key(1), *first});
  queue_.push({key(2), *second});
  EXPECT_EQ(queue_.pop()->hash, key(1));
  EXPECT_EQ(queue_.pop()->hash, key(2));
  EXPECT_FALSE(queue_.pop().has_value());
  EXPECT_LT(first->generation, second->generation);
}

TEST_F(WriteQueueTest, IsBoundedInBlocksAndInBytes) {
  testing::proves("WRITER-05", "DEF-21");
  const auto a = queue_.take_ticket(90, {}, WriteQueue::Entrance::kSaver);
  EXPECT_FALSE(queue_.take_ticket(11, {}, WriteQueue::Entrance::kSaver).has_value());
  const auto b = queue_.take_ticket(10, {}, WriteQueue::Entrance::kSaver);
  ASSERT_TRUE(b.has_value());
  EXPECT_FALSE(queue_.take_ticket(0, {}, WriteQueue::Entrance::kSaver).has_value());
  queue_.give_back(*a);
  EXPECT_TRUE(queue_.take_ticket(90, {}, WriteQueue::Entrance::kSaver).has_value());
}

TEST_F(WriteQueueTest, OneBlockAlwaysFitsIntoAnEmptyQueue) {
  EXPECT_TRUE(queue_.take_ticket(1000, {}, WriteQueue::Entrance::kSaver).has_value());
  EXPECT_FALSE(queue_.take_ticket(1, {}, WriteQueue::Entrance::kSaver).has_value());
}

TEST_F(WriteQueueTest, ATicketHoldsItsRoomUntilItsWriteHasEnded) {
  const auto ticket = queue_.take_ticket(100, {}, WriteQueue::Entrance::kSaver);
  queue_.push({key(1), *ticket});
  const auto item = queue_.pop();
  EXPECT_EQ(queue_.bytes(), 100u);
  queue_.finish(*item, WriteEnd::kWritten);
  EXPECT_EQ(queue_.bytes(), 0u);
  EXPECT_EQ(queue_.blocks(), 0u);
}

TEST_F(WriteQueueTest, ASaverWaitsNoLongerThanItWasTold) {
  ASSERT_TRUE(queue_.take_ticket(100, {}, WriteQueue::Entrance::kSaver).has_value());
  std::optional<Ticket> got;
  std::thread saver(
      [&] { got = queue_.take_ticket(1, std::chrono::seconds(1), WriteQueue::Entrance::kSaver); });
  ASSERT_TRUE(clock_->wait_for_waiters(1));
  clock_->advance(std::chrono::seconds(1));
  saver.join();
  EXPECT_FALSE(got.has_value());
}

TEST_F(WriteQueueTest, RoomWakesASaverThatWaits) {
  const auto held = queue_.take_ticket(100, {}, WriteQueue::Entrance::kSaver);
  std::optional<Ticket> got;
  std::thread saver(
      [&] { got = queue_.take_ticket(1, std::chrono::seconds(1), WriteQueue::Entrance::kSaver); });
  ASSERT_TRUE(clock_->wait_for_waiters(1));
  queue_.give_back(*held);
  saver.join();
  EXPECT_TRUE(got.has_value());
}

TEST_F(WriteQueueTest, ClosingSendsWaitingSaversAway) {
  ASSERT_TRUE(queue_.take_ticket(100, {}, WriteQueue::Entrance::kSaver).has_value());
  std::optional<Ticket> got;
  std::thread saver(
      [&] { got = queue_.take_ticket(1, std::chrono::hours(1), WriteQueue::Entrance::kSaver); });
  ASSERT_TRUE(clock_->wait_for_waiters(1));
  queue_.close();
  saver.join();
  EXPECT_FALSE(got.has_value());
  EXPECT_FALSE(queue_.take_ticket(1, {}, WriteQueue::Entrance::kSaver).has_value());
}

TEST_F(WriteQueueTest, AReportNamesFailedBlocksOnce) {
  const auto ticket = queue_.take_ticket(1, {}, WriteQueue::Entrance::kSaver);
  queue_.push({key(7), *ticket});
  queue_.finish(*queue_.pop(), WriteEnd::kFailed);
  const auto report = queue_.wait_finished(clock_->mono());
  EXPECT_TRUE(report.in_time);
  ASSERT_EQ(report.failed.size(), 1u);
  EXPECT_EQ(report.failed[0], key(7));
  EXPECT_TRUE(queue_.wait_finished(clock_->mono()).failed.empty());
}

TEST_F(WriteQueueTest, WaitingEndsAtTheDeadline) {
  const auto ticket = queue_.take_ticket(1, {}, WriteQueue::Entrance::kSaver);
  EXPECT_FALSE(queue_.wait_finished(clock_->mono()).in_time);
  queue_.give_back(*ticket);
  EXPECT_TRUE(queue_.wait_finished(clock_->mono()).in_time);
}

}  // namespace
}  // namespace kvkeep
