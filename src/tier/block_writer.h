// BlockWriter brings accepted blocks to disk, one at a time, in the order in which they were
// accepted.
//
// It finishes making room before it writes a byte (RUL-01), and renames only if the block is still
// the one that was accepted (LIFE-03).
//
// Threads: schedule() from any thread; the writing itself is one task at a time on the executor.
#pragma once

#include <atomic>
#include <memory>

#include "tier/cache_state.h"
#include "tier/reclaimer.h"

namespace kvkeep {

class BlockWriter {
 public:
  // The state owns the writer (through wake_writer).
  explicit BlockWriter(CacheState& state) : state_(state), reclaimer_(state) {}

  // Something was pushed: makes sure that a task, which keeps `owner` alive, will write it.
  void schedule(std::shared_ptr<CacheState> owner);

 private:
  struct Job {
    QueuedWrite write;
    ImagePtr image;
    LayoutPtr layout;
    uint64_t charge = 0;  // Bytes held in the account, reserved at first, then used.
  };

  void post(std::shared_ptr<CacheState> owner);
  void run_one(std::shared_ptr<CacheState> owner);
  bool tend_limit();
  WriteEnd write(const QueuedWrite& item);
  WriteEnd write(Job& job);
  std::optional<Job> claim(const QueuedWrite& item);
  Status make_room(const Job& job);
  bool drop_superseded(const BlockHash& hash);
  Status settle_charge(Job& job, const TempFile& temp);
  bool begin_commit(const Job& job);
  WriteEnd commit(const Job& job, const TempFile& temp);
  void end_commit(const Job& job);
  void count_leftovers();
  WriteEnd give_up(const Job& job, const Status& why);

  CacheState& state_;
  Reclaimer reclaimer_;
  std::atomic<uint64_t> waiting_ = 0;  // Pushed items that no task has taken yet.
};

}  // namespace kvkeep
