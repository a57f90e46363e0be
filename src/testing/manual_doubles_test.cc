// The clock, executor and logger that tests drive by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "testing/manual_clock.h"
#include "testing/manual_executor.h"
#include "testing/recording_logger.h"
#include "testing/temp_dir.h"

namespace kvkeep::testing {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;

// Waits once; true if the deadline had not passed.
bool wait_once(ManualClock& clock, Duration deadline) {
  std::mutex mutex;
  std::condition_variable cv;
  std::unique_lock<std::mutex> lock(mutex);
  const bool in_time = clock.wait_until(cv, lock, deadline);
  EXPECT_TRUE(lock.owns_lock());
  return in_time;
}

TEST(ManualClock, StandsStillUntilItIsMoved) {
  ManualClock clock;
  EXPECT_EQ(clock.wall(), 1767225600.25);
  EXPECT_EQ(clock.mono(), Duration::zero());
  clock.advance(std::chrono::milliseconds(1500));
  EXPECT_EQ(clock.wall(), 1767225601.75);
  EXPECT_EQ(clock.mono(), std::chrono::milliseconds(1500));
  clock.shift_wall(-100);
  EXPECT_EQ(clock.wall(), 1767225501.75);
  EXPECT_EQ(clock.mono(), std::chrono::milliseconds(1500));
}

TEST(ManualClock, DeadlineThatHasPassedDoesNotWait) {
  ManualClock clock;
  clock.advance(seconds(2));
  EXPECT_FALSE(wait_once(clock, seconds(2)));
}

TEST(ManualClock, AdvanceWakesThoseWhoseDeadlineItReaches) {
  ManualClock clock;
  std::atomic<int> woken = 0;
  std::vector<std::thread> threads;
  for (int i = 1; i <= 3; ++i) {
    threads.emplace_back([&, i] {
      EXPECT_FALSE(wait_once(clock, seconds(i)));
      ++woken;
    });
  }
  ASSERT_TRUE(clock.wait_for_waiters(3));
  clock.advance(std::chrono::milliseconds(999));
  EXPECT_EQ(woken, 0);
  clock.advance(std::chrono::milliseconds(1));
  threads[0].join();
  EXPECT_EQ(woken, 1);
  clock.advance(seconds(10));
  threads[1].join();
  threads[2].join();
  EXPECT_EQ(woken, 3);
}

TEST(ManualClock, NotifyWakesInTime) {
  ManualClock clock;
  Mutex mu;
  CondVar changed;
  bool ready = false;
  std::thread waiter([&] {
    MutexLock lock(mu);
    while (!ready) EXPECT_TRUE(changed.wait_until(mu, clock, seconds(1)));
  });
  ASSERT_TRUE(clock.wait_for_waiters(1));
  {
    MutexLock lock(mu);
    ready = true;
    changed.notify_all();
  }
  waiter.join();
}

// One advance for each wait, at the moment when the waiter may not be asleep yet. Its mutex and
// condition die as soon as it wakes.
TEST(ManualClock, NoWakeUpIsLost) {
  constexpr int kRounds = 5000;
  ManualClock clock;
  std::atomic<int> round = 0;
  std::thread waiter([&] {
    for (; round < kRounds; ++round) EXPECT_FALSE(wait_once(clock, Duration(round + 1)));
  });
  for (int i = 0; i < kRounds; ++i) {
    while (round != i) std::this_thread::yield();
    ASSERT_TRUE(clock.wait_for_waiters(1));
    clock.advance(Duration(1));
  }
  waiter.join();
}

TEST(ManualClock, ManyWaitersAndManyHandsAgree) {
  ManualClock clock;
  std::atomic<int> left = 3;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 500; ++round) wait_once(clock, clock.mono() + Duration(1));
      --left;
    });
  }
  const auto advance_until_done = [&] {
    while (left > 0) clock.advance(Duration(1));
  };
  threads.emplace_back(advance_until_done);
  advance_until_done();
  for (std::thread& thread : threads) thread.join();
}

TEST(ManualExecutor, RunsTasksInOrderWhenAsked) {
  ManualExecutor executor(std::make_shared<ManualClock>());
  std::vector<int> ran;
  for (int i = 0; i < 4; ++i) executor.post([&ran, i] { ran.push_back(i); });
  EXPECT_EQ(executor.pending(), 4u);
  EXPECT_TRUE(executor.run_one());
  EXPECT_EQ(executor.run(2), 2u);
  EXPECT_THAT(ran, ElementsAre(0, 1, 2));
  EXPECT_EQ(executor.run(5), 1u);
  EXPECT_FALSE(executor.run_one());
  EXPECT_EQ(executor.run_all(), 0u);
}

TEST(ManualExecutor, RunAllRunsWhatTasksPost) {
  ManualExecutor executor(std::make_shared<ManualClock>());
  int ran = 0;
  executor.post([&] {
    ++ran;
    executor.post([&] { ++ran; });
  });
  EXPECT_EQ(executor.run_all(), 2u);
  EXPECT_EQ(ran, 2);
}

TEST(ManualExecutor, RunsDelayedTasksWhenTheClockHasReachedThem) {
  const auto clock = std::make_shared<ManualClock>();
  ManualExecutor executor(clock);
  std::vector<int> ran;
  executor.post_after(std::chrono::seconds(2), [&] { ran.push_back(2); });
  executor.post_after(std::chrono::seconds(1), [&] { ran.push_back(1); });
  executor.run_all();
  EXPECT_TRUE(ran.empty());
  EXPECT_EQ(executor.delayed(), 2u);
  clock->advance(std::chrono::seconds(1));
  EXPECT_EQ(executor.pending(), 1u);
  executor.run_all();
  EXPECT_EQ(ran, std::vector<int>{1});
  clock->advance(std::chrono::seconds(9));
  executor.run_all();
  EXPECT_EQ(ran, (std::vector<int>{1, 2}));
}

TEST(ManualExecutor, DropsWhatIsLeft) {
  const auto held = std::make_shared<int>(0);
  {
    ManualExecutor executor(std::make_shared<ManualClock>());
    executor.post([held] { FAIL(); });
    EXPECT_EQ(held.use_count(), 2);
  }
  EXPECT_EQ(held.use_count(), 1);
}

TEST(RecordingLogger, FindsMessages) {
  RecordingLogger logger;
  logger.log(LogLevel::kWarning, "disk is nearly full");
  logger.log(LogLevel::kError, "disk is full");
  EXPECT_TRUE(logger.contains("nearly"));
  EXPECT_FALSE(logger.contains("empty"));
  EXPECT_EQ(logger.count("disk"), 2u);
  EXPECT_EQ(logger.count(LogLevel::kError), 1u);
  EXPECT_EQ(logger.lines()[0].message, "disk is nearly full");
  logger.clear();
  EXPECT_TRUE(logger.lines().empty());
}

TEST(TempDir, IsGoneWithEverythingInIt) {
  std::filesystem::path path;
  {
    const TempDir dir;
    path = dir.path();
    std::filesystem::create_directories(path / "a/b");
    std::ofstream(path / "a/b/f") << "text";
    EXPECT_TRUE(std::filesystem::exists(path / "a/b/f"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace kvkeep::testing
