#include <gtest/gtest.h>

#include <atomic>

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
