// Reclaimer makes room on the disk by giving up the blocks that were used least recently.
//
// Threads: any thread.
#pragma once

#include <cstdint>

#include "tier/removal.h"

namespace kvkeep {

class Reclaimer {
 public:
  explicit Reclaimer(CacheState& state) : state_(state) {}

  // Gives up blocks, pending ones too, until everything tracked fits, at most `max_unlinks` files
  // are unlinked, or nothing is left to give up.
  void make_room(uint64_t max_unlinks);

  // Removes one file. Where every removable file is just being removed by somebody else, waits for
  // one of those. False if there is none.
  bool evict_file();

  // Unlinks a file that the caller has claimed, and ends the claim either way. True if it is gone.
  bool unlink_claimed(const FileClaim& claim);

 private:
  enum class Victims : uint8_t { kAny, kFilesOnly };
  enum class Given : uint8_t { kNothing, kCancelledWrite, kUnlinkedFile };

  Given give_up_oldest(Victims victims);
  Given give_up(const BlockHash& hash, Victims victims);
  bool wait_for_removal();

  CacheState& state_;
};

}  // namespace kvkeep
