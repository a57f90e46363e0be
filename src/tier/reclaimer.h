// Reclaimer makes room on the disk by giving up blocks, in the order of the index.
//
// Threads: any thread. Unlinks files on the calling thread, without a lock.
#pragma once

#include <cstdint>
#include <functional>

#include "kvkeep/block_cache.h"
#include "tier/removal.h"

namespace kvkeep {

// Why a block that takes `charge` bytes is refused although every other block could leave.
Status never_fits(const CacheState& state, uint64_t charge);

// kResourceExhausted (kNoSpace) for a block that continues one that had to give room: nobody could
// get to it. One that continues a block never heard of is the caller's affair.
Status can_be_reached(CacheState& state, const std::optional<BlockHash>& parent);

class Reclaimer {
 public:
  explicit Reclaimer(CacheState& state) : state_(state) {}

  enum class Victims : uint8_t { kAny, kFilesOnly };  // Any: blocks that wait to be written, too.
  struct Goal {
    std::function<uint64_t()> excess;   // Bytes that still have to go.
    uint64_t max_unlinks = UINT64_MAX;  // Tries that failed are counted, too.
    Victims victims = Victims::kAny;
  };
  struct Outcome {
    uint64_t blocks = 0;  // Given up.
    uint64_t unlinks = 0;
    uint64_t failed = 0;  // Files that could not be unlinked.
    uint64_t bytes = 0;   // Freed.
    // A block that nothing continues has to stay, and so do those that it continues.
    bool leaf_stays = false;
  };
  // Gives up blocks until there is no excess, the unlinks are used up, or nothing is left that can
  // be given up.
  Outcome evict(const Goal& goal);

  // Until `incoming` bytes more fit beside everything tracked; where they never will, until 90 % of
  // the limit are tracked.
  EvictionReport make_room(uint64_t incoming, uint64_t max_unlinks);
  // Where the limit is exceeded, evicts down to 90 % of it. Bytes freed.
  uint64_t enforce_limit();
  // Keeps `share` of the limit free, with a few unlinks at a time. True if there is more to do.
  bool keep_free(double share);
  // One step towards a limit that comes from free space. True if there is more to do.
  bool step_down();

  // Removes one file. Where every removable file is just being removed by somebody else, waits for
  // one of those. False if there is none.
  bool evict_file();

  // Unlinks a file that the caller has claimed, and ends the claim either way. True if it is gone.
  bool unlink_claimed(const FileClaim& claim);

 private:
  bool give_up_oldest(const Goal& goal, Outcome& outcome);
  bool can_leave(const Entry& entry, Victims victims) const;
  bool must_leave_first(const Entry& entry) const;
  // True if the order is to be looked at anew.
  bool give_up(const BlockHash& hash, Victims victims, Outcome& outcome);
  bool wait_for_removal();

  CacheState& state_;
};

}  // namespace kvkeep
