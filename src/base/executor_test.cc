#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "kvkeep/environment.h"

namespace kvkeep {
namespace {

TEST(ThreadExecutor, FinishesEverythingPostedBeforeItGoes) {
  std::atomic<int> done = 0;
  {
    const auto executor = make_thread_executor(2);
    for (int i = 0; i < 100; ++i) executor->post([&done] { ++done; });
  }
  EXPECT_EQ(done, 100);
}

TEST(ThreadExecutor, RunsDelayedTasksInTheOrderOfTheirTimes) {
  const auto executor = make_thread_executor(1);
  Mutex mu;
  CondVar changed;
  std::string ran;
  const auto note = [&](char name) {
    MutexLock lock(mu);
    ran += name;
    changed.notify_all();
  };
  executor->post_after(std::chrono::milliseconds(2), [&] { note('b'); });
  executor->post_after(std::chrono::milliseconds(1), [&] { note('a'); });
  executor->post_after(std::chrono::hours(1), [&] { note('c'); });
  MutexLock lock(mu);
  while (ran.size() < 2) changed.wait(mu);
  EXPECT_EQ(ran, "ab");
}

TEST(ThreadExecutor, DropsWhatIsNotDueWhenItGoes) {
  const auto held = std::make_shared<int>(1);
  make_thread_executor(1)->post_after(std::chrono::hours(1), [held] {});
  EXPECT_EQ(held.use_count(), 1);
}

TEST(ThreadExecutor, TasksMayPostTasks) {
  std::atomic<int> done = 0;
  {
    const auto executor = make_thread_executor(1);
    executor->post([&done, raw = executor.get()] {
      raw->post([&done] { ++done; });
      ++done;
    });
  }
  EXPECT_EQ(done, 2);
}

TEST(ThreadExecutor, MayBeDroppedByItsOwnTask) {
  auto executor = make_thread_executor(1);
  Mutex mu;
  CondVar changed;
  bool dropped = false;
  Executor* raw = executor.get();
  auto held = std::make_shared<std::shared_ptr<Executor>>(std::move(executor));
  raw->post([&, held] {
    held->reset();
    MutexLock lock(mu);
    dropped = true;
    changed.notify_all();
  });
  MutexLock lock(mu);
  while (!dropped) changed.wait(mu);
  EXPECT_TRUE(dropped);
}

}  // namespace
}  // namespace kvkeep
