// CacheState: what the parts of one open cache share.
//
// Tasks hold it through a shared_ptr, so that one that is stuck in the system can end safely after
// the cache itself is gone.
//
// Threads: every member is safe from any thread or constant after open.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "disk/disk_space.h"
#include "disk/space_account.h"
#include "disk/store_directory.h"
#include "index/block_index.h"
#include "index/current_expectation.h"
#include "index/departed_keys.h"
#include "index/layout.h"
#include "io/buffer_pool.h"
#include "io/read_engine.h"
#include "kvkeep/environment.h"
#include "kvkeep/options.h"
#include "stats/stats.h"
#include "tier/call_gate.h"
#include "tier/hot_tier.h"
#include "tier/leases.h"
#include "tier/pending_notes.h"
#include "tier/write_queue.h"

namespace kvkeep {

class BlockWriter;

struct CacheState {
  CacheState(Options o, Environment e, uint32_t pending_cap, uint64_t pending_max_bytes)
      : options(std::move(o)),
        expectation(expectation_of(options)),
        environment(std::move(e)),
        index(options.eviction),
        queue(pending_cap, pending_max_bytes, environment.clock),
        hot(*this) {}

  const Options options;
  CurrentExpectation expectation;
  const Environment environment;  // Every member set.

  std::shared_ptr<BufferPool> pool;
  // Null in hot-only mode; nothing then has a file or is pending.
  std::unique_ptr<StoreDirectory> directory;
  std::unique_ptr<ReadEngine> engine;
  std::unique_ptr<SpaceAccount> account;
  std::unique_ptr<DiskSpace> disk_space;

  LayoutTable layouts;
  BlockIndex index;
  DepartedKeys departed;
  Stats stats;
  WriteQueue queue;
  HotTier hot;
  LeaseBook leases;
  PendingNotes notes;
  mutable CallGate gate;
  std::shared_ptr<BlockWriter> writer;
  // Makes sure that a pushed block gets written. Set once, before the first call.
  std::function<void()> wake_writer;
  std::atomic<uint64_t> last_file_generation = 0;
  std::atomic<uint64_t> quarantine_bytes = 0;
  // As of open or the last reconcile. Overhead: directories and service files.
  std::atomic<uint64_t> overhead_bytes = 0;
  std::atomic<uint64_t> foreign_files = 0;
  std::atomic<uint64_t> foreign_bytes = 0;

  bool has_disk() const { return directory != nullptr; }
  void enqueue(QueuedWrite write) {
    queue.push(std::move(write));
    wake_writer();
  }
  // Call without a lock.
  void emit(EventKind kind, const BlockHash* hash, uint64_t bytes, uint64_t count = 0) const {
    if (environment.events != nullptr) environment.events->on_event({kind, hash, bytes, count});
  }
  Clock& clock() const { return *environment.clock; }
  void log(LogLevel level, const std::string& message) const {
    environment.logger->log(level, message);
  }
};

}  // namespace kvkeep
