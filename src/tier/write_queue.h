// WriteQueue: accepted blocks on their way to disk, bounded in blocks and in bytes of RAM.
//
// A saver first takes a ticket (the only wait a save can have), then publishes its block and pushes
// the ticket. The ticket holds its room until the write has ended, whichever way. Its number is the
// generation of the save: a writer commits only the generation it was given.
//
// Threads: any thread. mu_ is a leaf lock.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "kvkeep/block_hash.h"
#include "kvkeep/environment.h"

namespace kvkeep {

struct Ticket {
  uint64_t generation = 0;
};

struct QueuedWrite {
  BlockHash hash;
  Ticket ticket;
  // Low priority until this time of the clock: written when nothing else is queued.
  std::optional<Duration> can_wait_until{};
};

enum class WriteEnd : uint8_t { kWritten, kCancelled, kFailed };

class WriteQueue {
 public:
  WriteQueue(uint32_t max_blocks, uint64_t max_bytes, std::shared_ptr<Clock> clock)
      : max_blocks_(max_blocks), max_bytes_(max_bytes), clock_(std::move(clock)) {}

  enum class Entrance : uint8_t {
    kSaver,       // Until the queue is closed.
    kFlush,       // Also then.
    kBackground,  // Half of the blocks at most, and none after the queue is closed.
  };
  // Waits at most `wait` for room. One block always fits into an empty queue. None if the queue
  // stayed full or is closed.
  std::optional<Ticket> take_ticket(uint64_t ram_bytes, Duration wait, Entrance entrance)
      KVKEEP_EXCLUDES(mu_);
  // Without a wait and beyond the bounds. None if the queue is closed.
  std::optional<Ticket> take_extra_ticket(uint64_t ram_bytes) KVKEEP_EXCLUDES(mu_);
  void push(QueuedWrite write) KVKEEP_EXCLUDES(mu_);
  // The oldest pushed one that need not wait any more, if any.
  std::optional<QueuedWrite> pop() KVKEEP_EXCLUDES(mu_);
  // Gives the ticket's room back. `hash` goes into the next report if the write failed.
  void finish(const QueuedWrite& write, WriteEnd end) KVKEEP_EXCLUDES(mu_);
  // A ticket that was never published.
  void give_back(const Ticket& ticket) KVKEEP_EXCLUDES(mu_);

  // No tickets any more; savers that wait for one leave without.
  void close() KVKEEP_EXCLUDES(mu_);

  struct Report {
    uint64_t written = 0;
    std::vector<BlockHash> failed;  // Since the last report.
    bool in_time = false;
  };
  // Waits until every ticket taken before the call has finished, or until `deadline` of the clock.
  Report wait_finished(std::optional<Duration> deadline) KVKEEP_EXCLUDES(mu_);

  uint32_t max_blocks() const { return max_blocks_; }
  uint64_t blocks() const KVKEEP_EXCLUDES(mu_);
  uint64_t bytes() const KVKEEP_EXCLUDES(mu_);

 private:
  static constexpr size_t kMaxFailedNamed = 4096;

  bool has_room(uint64_t ram_bytes, Entrance entrance) const KVKEEP_REQUIRES(mu_);
  Ticket issue(uint64_t ram_bytes) KVKEEP_REQUIRES(mu_);
  void release(const Ticket& ticket) KVKEEP_REQUIRES(mu_);

  const uint32_t max_blocks_;
  const uint64_t max_bytes_;
  const std::shared_ptr<Clock> clock_;
  mutable Mutex mu_;
  CondVar changed_;
  using Writes = std::list<std::optional<QueuedWrite>>;
  Writes pushed_ KVKEEP_GUARDED_BY(mu_);
  Writes can_wait_ KVKEEP_GUARDED_BY(mu_);
  Writes spare_ KVKEEP_GUARDED_BY(mu_);  // A place for each ticket, so that a push needs no memory.
  std::map<uint64_t, uint64_t> open_ KVKEEP_GUARDED_BY(mu_);  // Generation -> bytes of its ticket.
  uint64_t open_bytes_ KVKEEP_GUARDED_BY(mu_) = 0;
  uint64_t last_generation_ KVKEEP_GUARDED_BY(mu_) = 0;
  uint64_t written_ KVKEEP_GUARDED_BY(mu_) = 0;
  std::vector<BlockHash> failed_ KVKEEP_GUARDED_BY(mu_);
  bool closed_ KVKEEP_GUARDED_BY(mu_) = false;
};

}  // namespace kvkeep
