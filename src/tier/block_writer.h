// BlockWriter brings accepted blocks to disk, one at a time, in the order in which they were
// accepted; between two of them it tends the limit. A saver that found the queue full may have it
// write one block more on its own thread.
//
// It finishes making room before it writes a byte (RUL-01), and renames only if the block is still
// the one that was accepted (LIFE-03). An exception (no memory, a foreign FileSystem) costs the
// block that was being written, not the writer.
//
// Threads: any thread; what was scheduled is one task at a time on the executor.
#pragma once

#include <atomic>
#include <memory>

#include "tier/cache_state.h"
#include "tier/full_disk.h"
#include "tier/reclaimer.h"

namespace kvkeep {

class BlockWriter {
 public:
  // The state owns the writer.
  explicit BlockWriter(CacheState& state) : state_(state), reclaimer_(state), full_disk_(state) {}

  // Something was pushed: makes sure that a task, which keeps `owner` alive, will write it.
  void schedule(std::shared_ptr<CacheState> owner);
  // Schedules again what memory did not suffice for. Before anybody waits for the queue.
  void catch_up(std::shared_ptr<CacheState> owner);

  struct Written {
    WriteEnd end = WriteEnd::kCancelled;
    Status failure;  // Why the block is not kept, with the reason to be counted for it.
  };
  // Writes a published block that was not pushed.
  Written write_inline(const QueuedWrite& item);
  // The write that a task is doing takes longer than Options::io_deadline.
  bool is_overdue() const;

 private:
  enum class Source : uint8_t { kBackground, kInline };
  enum class Charge : uint8_t { kReserved, kUsed, kNone };
  struct Job {
    QueuedWrite write;
    ImagePtr image;
    LayoutPtr layout;
    uint64_t charge = 0;  // Bytes held in the account, as `held` says.
    Source source = Source::kBackground;
    Charge held = Charge::kReserved;
    std::optional<TempFile> temp{};  // Until it is renamed or discarded.
    Status failure{};
  };

  bool post(std::shared_ptr<CacheState> owner);
  void run(const std::shared_ptr<CacheState>& owner);
  void run_one();
  bool tend_limit();
  WriteEnd write_scheduled(const QueuedWrite& item);
  WriteEnd write_guarded(Job& job);
  WriteEnd recover(Job& job);
  WriteEnd write(Job& job);
  std::optional<Job> claim(const QueuedWrite& item, Source source);
  Status write_temp(Job& job);
  Status try_write_temp(Job& job);
  Status make_room(Job& job);
  bool drop_superseded(const BlockHash& hash);
  Status settle_charge(Job& job);
  bool begin_commit(const Job& job);
  WriteEnd commit(Job& job);
  void end_commit(Job& job);
  void discard(Job& job);
  void give_back(Job& job);
  void count_leftovers();
  WriteEnd give_up(Job& job, const Status& why);
  void report(const Job& job, Refusal reason, bool still_hot);
  void warn_of_inline_write();

  CacheState& state_;
  Reclaimer reclaimer_;
  FullDisk full_disk_;
  std::atomic<uint64_t> waiting_ = 0;        // Turns that no task has taken yet.
  std::atomic<bool> unposted_ = false;       // There are such, but no task: it could not be posted.
  std::atomic<int64_t> writing_since_ = -1;  // clock.mono() in ns; -1: a task is not writing.
  std::atomic<int64_t> inline_warned_ = -1;
};

}  // namespace kvkeep
