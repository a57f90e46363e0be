// Takes blocks out of a store: for room, by name, or because they are damaged.
//
// Threads: one at a time; the caller owns the store.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "directory/listing.h"
#include "directory/removal_order.h"
#include "disk/store_directory.h"
#include "kvkeep/directory.h"
#include "kvkeep/status.h"

namespace kvkeep {

// Everything about a store that decides who goes.
struct RemovalStock {
  std::vector<BlockRecord> records;
  uint64_t store_bytes = 0;  // Allocated, as a limit counts.
};
Result<RemovalStock> take_removal_stock(FileSystem& file_system, const std::filesystem::path& root,
                                        Leftovers leftovers, const RemovalProgress& progress = {});

struct RemovalPlan {
  std::vector<BlockHash> blocks;  // In this order.
  std::vector<uint64_t> bytes;    // Of each, allocated.
  uint64_t store_bytes = 0;       // Before.
};
// `now`: wall time in seconds.
RemovalPlan plan_gc(const RemovalStock& stock, const GcOptions& options, double now);
RemovalPlan plan_removal(const RemovalStock& stock, const RemoveOptions& options, double now);

// What the plan would remove.
RemovalReport foretell(const RemovalPlan& plan);
// Removes it. A block that cannot be removed is counted; the others go on. Directories are synced.
RemovalReport carry_out(const RemovalPlan& plan, StoreDirectory& store,
                        const RemovalProgress& progress = {});

// Checks the blocks again and moves those that are damaged aside.
RemovalReport quarantine(std::span<const BlockHash> keys, StoreDirectory& store,
                         uint64_t store_bytes);

}  // namespace kvkeep
