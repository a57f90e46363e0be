// What a cache does, as it does it: for traces, dashboards and tests. Counters say how often
// (stats.h); events say which block.
//
// Threads: a sink is called from any thread, never while the cache holds a lock. It must not throw,
// and what it costs is added to the call or write that it hears of.
#pragma once

#include <cstdint>
#include <string_view>

#include "kvkeep/block_hash.h"

namespace kvkeep {

// X(enumerator, name, help)
#define KVKEEP_EVENTS(X)                                                              \
  X(kSaveStored, "save_stored", "a block was saved into the hot tier")                \
  X(kSaveQueued, "save_queued", "a block was saved into the write queue")             \
  X(kSpillQueued, "spill_queued", "a block left the hot tier for the write queue")    \
  X(kFlushQueued, "flush_queued", "a block of the hot tier is to be written")         \
  X(kInlineWrite, "inline_write", "a save wrote its block itself: the queue is full") \
  X(kWriteCommitted, "write_committed", "a block has its file")                       \
  X(kWriteFailed, "write_failed", "a block could not be written")                     \
  X(kWriteCancelled, "write_cancelled", "a block went before it was written")         \
  X(kEvicted, "evicted", "a file was removed to make room")                           \
  X(kUnlinkFailed, "unlink_failed", "a file could not be removed")                    \
  X(kPromoted, "promoted", "a block that was read stays in the hot tier")             \
  X(kHotEvicted, "hot_evicted", "a block left the hot tier to make room")             \
  X(kQuarantined, "quarantined", "a damaged file was moved aside or deleted")         \
  X(kScanDone, "scan_done", "the store was scanned; count: blocks served")            \
  X(kSweepDone, "sweep_done", "stale layouts were swept; count: blocks dropped")

enum class EventKind : uint8_t {
#define KVKEEP_X(id, name, help) id,
  KVKEEP_EVENTS(KVKEEP_X)
#undef KVKEEP_X
};
std::string_view name_of(EventKind kind);

struct Event {
  EventKind kind = EventKind::kSaveStored;
  const BlockHash* hash = nullptr;  // Null where it is about no single block. Valid in the call.
  uint64_t bytes = 0;               // Of the block's image or file.
  uint64_t count = 0;
};

class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void on_event(const Event& event) = 0;
};

}  // namespace kvkeep
