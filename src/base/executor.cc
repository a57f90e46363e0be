#include <deque>
#include <map>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "kvkeep/environment.h"

namespace kvkeep {
namespace {

// Shared by the threads, so that one that is stuck in the system can end after everybody else left.
struct Shared {
  Mutex mu;
  CondVar changed;
  std::deque<std::function<void()>> tasks KVKEEP_GUARDED_BY(mu);
  std::multimap<Duration, std::function<void()>> delayed KVKEEP_GUARDED_BY(mu);  // By due time.
  bool stop KVKEEP_GUARDED_BY(mu) = false;
  unsigned running KVKEEP_GUARDED_BY(mu) = 0;
};

// Moves what is due to the tasks, and waits for a change or for the next due time if nothing is.
void wait_for_tasks(Shared& shared) KVKEEP_REQUIRES(shared.mu) {
  while (shared.tasks.empty() && !shared.stop) {
    if (shared.delayed.empty()) {
      shared.changed.wait(shared.mu);
      continue;
    }
    const auto next = shared.delayed.begin();
    if (next->first <= system_clock()->mono()) {
      shared.tasks.push_back(std::move(next->second));
      shared.delayed.erase(next);
    } else {
      const Duration due = next->first;
      shared.changed.wait_until(shared.mu, *system_clock(), due);
    }
  }
}

// The next task; none once stopped and drained.
std::function<void()> take(Shared& shared) {
  MutexLock lock(shared.mu);
  wait_for_tasks(shared);
  if (shared.tasks.empty()) return nullptr;
  std::function<void()> task = std::move(shared.tasks.front());
  shared.tasks.pop_front();
  ++shared.running;
  return task;
}

void run(const std::shared_ptr<Shared>& shared) {
  while (std::function<void()> task = take(*shared)) {
    task();
    task = nullptr;  // What the task holds goes before the thread counts as idle.
    MutexLock lock(shared->mu);
    --shared->running;
    shared->changed.notify_all();
  }
}

class ThreadExecutor final : public Executor {
 public:
  explicit ThreadExecutor(unsigned threads) {
    for (unsigned i = 0; i < threads; ++i) {
      threads_.emplace_back([shared = shared_] { run(shared); });
    }
  }
  ~ThreadExecutor() override {
    unsigned own = 0;  // 1 if this is one of our threads, dropping the executor from inside a task.
    for (const std::thread& thread : threads_) own += thread.get_id() == std::this_thread::get_id();
    const bool idle = stop(own);
    for (std::thread& thread : threads_) {
      const bool self = thread.get_id() == std::this_thread::get_id();
      if (idle && !self) {
        thread.join();
      } else {
        thread.detach();
      }
    }
  }
  void post(std::function<void()> task) override {
    MutexLock lock(shared_->mu);
    shared_->tasks.push_back(std::move(task));
    shared_->changed.notify_all();
  }
  void post_after(Duration delay, std::function<void()> task) override {
    const Duration due = system_clock()->mono() + delay;
    MutexLock lock(shared_->mu);
    shared_->delayed.emplace(due, std::move(task));
    shared_->changed.notify_all();
  }

 private:
  // A caller that got here past its own deadline has waited already: a task still running is stuck.
  bool stop(unsigned own) {
    std::multimap<Duration, std::function<void()>> dropped;  // Destroyed without the lock.
    MutexLock lock(shared_->mu);
    dropped.swap(shared_->delayed);
    shared_->stop = true;
    shared_->changed.notify_all();
    const Duration deadline = system_clock()->mono() + std::chrono::seconds(1);
    while (shared_->running > own || !shared_->tasks.empty()) {
      if (!shared_->changed.wait_until(shared_->mu, *system_clock(), deadline)) return false;
    }
    return true;
  }

  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::vector<std::thread> threads_;
};

}  // namespace

std::shared_ptr<Executor> make_thread_executor(unsigned threads) {
  return std::make_shared<ThreadExecutor>(threads == 0 ? 1 : threads);
}

}  // namespace kvkeep
