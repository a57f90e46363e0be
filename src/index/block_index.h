// BlockIndex: every block that a store holds or is about to hold, and the state of each.
//
// A block has three parts that change independently: the file at its path, a pending image that has
// been accepted and is on its way there, and a hot image that is kept for loads. Contract C.1's
// states are combinations of them:
//
//   HotDirty = hot, dirty       Queued = pending kQueued        Writing = pending kWriting
//   Committing = pending kCommitting    Durable = file kDurable
//   Incompatible = file kIncompatible   Removing = file kRemoving
//
// kCommitting and kRemoving are owned by the thread that set them, while it renames or unlinks
// without any lock; everybody else waits or answers from what is in memory. docs/locking.md shows
// who may go from which state to which.
//
// Threads: any thread. Each access locks one of 64 shards; see LockedEntry.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/mutex.h"
#include "codec/image.h"
#include "index/eviction_order.h"
#include "index/layout.h"
#include "kvkeep/block_hash.h"
#include "kvkeep/reason.h"

namespace kvkeep {

enum class FileState : uint8_t { kNone, kDurable, kIncompatible, kRemoving };
enum class PendingState : uint8_t {
  kParked,      // Waits until the old file's removal has ended; then queued.
  kQueued,      // In the write queue.
  kWriting,     // Its temporary file is being written.
  kCommitting,  // Being renamed.
};

struct PendingBlock {
  uint64_t generation =
      0;  // Of the accepted save. A writer commits only the generation it was given.
  PendingState state = PendingState::kQueued;
  uint64_t charge = 0;  // Bytes reserved on disk.
  ImagePtr image;
  LayoutPtr layout;
};

struct HotBlock {
  uint64_t generation = 0;  // Of this stay in RAM: what the budget knows it by.
  bool dirty = false;       // No file holds it, and one should.
  bool ram_only = false;    // No file may hold it.
  ImagePtr image;
  LayoutPtr layout;
};

struct BlockFile {
  FileState state = FileState::kNone;
  MissReason why = MissReason::kAbsent;  // kIncompatible: why it is not served.
  bool used = false;                     // Since open; its file time is refreshed at close.
  uint8_t read_failures = 0;             // In a row. Above 0: suspect, and not served (RUL-13).
  uint64_t generation = 0;               // Changes whenever another file takes the path.
  uint64_t file_bytes = 0;
  uint64_t allocated = 0;
  double last_access = 0;    // Seconds since the Unix epoch.
  Duration verified{};       // clock.mono() when it was last known to exist.
  Duration retry_after{};    // Eviction leaves it alone until then: an unlink failed.
  Duration suspect_until{};  // Loads leave it alone until then: a read failed.
  LayoutPtr layout;          // Null where the header could not be read.
};

// Who uses a served block just now (contract RUL-41). Void once it is not served any more.
struct LeaseMark {
  uint32_t holders = 0;
  Duration until{};     // The latest of their ends.
  uint32_t saving = 0;  // Saves of blocks that continue this one.
};

struct Entry {
  OrderNode order;
  LeaseMark lease;
  uint64_t tenure = 0;  // Changes whenever the block begins to be served.
  BlockFile file;
  std::unique_ptr<PendingBlock> pending;
  std::unique_ptr<HotBlock> hot;

  bool servable() const {
    const bool durable = file.state == FileState::kDurable && file.read_failures == 0;
    return hot != nullptr || pending != nullptr || durable;
  }
  bool leased(Duration now) const { return lease.holders > 0 && now < lease.until; }
  // Eviction passes it over.
  bool stays(Duration now) const { return lease.saving > 0 || leased(now); }
  // Also a suspect file is tried again after a while.
  bool loadable(Duration now) const {
    return servable() || (file.state == FileState::kDurable && now >= file.suspect_until);
  }
  // Owned by a thread that is renaming or unlinking.
  bool busy() const {
    return file.state == FileState::kRemoving ||
           (pending != nullptr && pending->state == PendingState::kCommitting);
  }
};

struct IndexTotals {
  uint64_t entries = 0;
  uint64_t servable = 0;
  uint64_t files = 0;         // At their final path.
  uint64_t incompatible = 0;  // Of these, not served.
  uint64_t file_bytes = 0;    // Sum of their lengths.

  friend bool operator==(const IndexTotals& a, const IndexTotals& b) {
    return a.entries == b.entries && a.servable == b.servable && a.files == b.files &&
           a.incompatible == b.incompatible && a.file_bytes == b.file_bytes;
  }
};

class BlockIndex {
 public:
  explicit BlockIndex(Eviction policy = Eviction::kLeafFirstLru) : order_(policy) {}
  ~BlockIndex();
  BlockIndex(const BlockIndex&) = delete;
  BlockIndex& operator=(const BlockIndex&) = delete;

  EvictionOrder& order() { return order_; }
  IndexTotals totals() const;
  // Every key that was present throughout the call, and perhaps others, in no particular order.
  std::vector<BlockHash> keys();
  // Calls `look` for each of them, with its shard locked: `look` reads the entry and nothing else.
  void visit(const std::function<void(const Entry&)>& look);
  // Those of them whose entries satisfied `pure`, a function of the entry alone.
  std::vector<BlockHash> keys_where(const std::function<bool(const Entry&)>& pure);

 private:
  friend class LockedEntry;
  struct Shard {
    Mutex mu;
    CondVar changed;  // Some entry stopped being busy.
    std::unordered_map<BlockHash, Entry> entries;
  };
  static constexpr size_t kShards = 64;

  Shard& shard_of(const BlockHash& hash);

  std::array<Shard, kShards> shards_;
  EvictionOrder order_;
  std::atomic<uint64_t> last_tenure_ = 0;
  struct {
    std::atomic<uint64_t> entries, servable, files, incompatible, file_bytes;
  } totals_{};
};

// The entry of one key, with its shard locked for as long as this object lives.
//
// While one is held: no system call, no callback, no wait but wait_until_idle(), and no other lock
// but leaf locks. Totals follow from what the entry was before and is after.
class LockedEntry {
 public:
  LockedEntry(BlockIndex& index, const BlockHash& hash);
  ~LockedEntry();
  LockedEntry(const LockedEntry&) = delete;
  LockedEntry& operator=(const LockedEntry&) = delete;

  // Null if there is none. Valid until erase(), wait_until_idle() or the end of this object.
  Entry* get() { return entry_; }
  // Creates the entry, used at `used_at`, if there is none.
  Entry& get_or_add(double used_at = 0);
  // Makes the entry the most recent, used at `now`. REQUIRES, for the next four: there is one.
  void touch(double now);
  // Evicted before all others from now on, until it is touched.
  void put_first();
  // The block that this one continues.
  void set_parent(const std::optional<BlockHash>& parent);
  // REQUIRES: it is not busy.
  void erase();
  // Erases the entry if no part holds anything.
  void erase_if_empty();
  // Waits, with the shard unlocked, while the entry is busy. Look at get() again afterwards.
  void wait_until_idle();
  // Tells waiters that the entry may no longer be busy.
  void notify() { shard_.changed.notify_all(); }

 private:
  IndexTotals count() const;
  void apply_change();
  void apply_tenure(const IndexTotals& now);
  void apply_rank();
  void find();

  BlockIndex& index_;
  const BlockHash& hash_;
  BlockIndex::Shard& shard_;
  Entry* entry_ = nullptr;
  IndexTotals before_;
  uint8_t rank_ = 0;  // In the eviction order.
};

}  // namespace kvkeep
