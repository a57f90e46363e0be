#include "tier/full_disk.h"

#include <algorithm>
#include <cerrno>

namespace kvkeep {
namespace {

constexpr Duration kPause = std::chrono::seconds(1);
constexpr Duration kLongPause = std::chrono::seconds(60);
constexpr unsigned kFutileAtMost = 3;
constexpr uint64_t kTrackedShare = 100;
constexpr uint64_t kBlocksAtLeast = 8;

}  // namespace

bool is_full(const Status& status) {
  return status.sys_errno() == ENOSPC || status.sys_errno() == EDQUOT;
}

bool FullDisk::make_room(uint64_t needed) {
  const uint64_t before = read_free();
  if (!may_reclaim(before)) return false;
  const bool made = reclaim(needed);
  note(before, read_free());
  return made;
}

Refusal FullDisk::reason(const Status& status) const {
  if (status.sys_errno() == EDQUOT) return Refusal::kQuota;
  return state_.disk_space->out_of_inodes() ? Refusal::kNoInodes : Refusal::kNoSpace;
}

uint64_t FullDisk::read_free() {
  state_.disk_space->drop();
  state_.disk_space->refresh();
  return state_.disk_space->free_bytes();
}

bool FullDisk::may_reclaim(uint64_t free) {
  const Duration now = state_.clock().mono();
  MutexLock lock(mu_);
  if (futile_ >= kFutileAtMost && free > free_then_) futile_ = 0;
  const Duration pause = futile_ >= kFutileAtMost ? kLongPause : kPause;
  if (last_ && now - *last_ < pause) return false;
  if (futile_ >= kFutileAtMost) futile_ = 0;
  last_ = now;
  return true;
}

// At least what is needed, 1 % of what is tracked, and eight blocks.
bool FullDisk::reclaim(uint64_t needed) {
  const uint64_t start = state_.account->used();
  const uint64_t bytes = std::max(needed, state_.account->tracked() / kTrackedShare);
  const auto freed = [&] {
    const uint64_t used = state_.account->used();
    return start > used ? start - used : 0;
  };
  const auto excess = [&] { return bytes > freed() ? bytes - freed() : 0; };
  using Victims = Reclaimer::Victims;
  const uint64_t first = reclaimer_.evict({excess, UINT64_MAX, Victims::kFilesOnly}).blocks;
  if (first >= kBlocksAtLeast) return true;
  const auto always = [] { return uint64_t{1}; };
  const uint64_t rest =
      reclaimer_.evict({always, kBlocksAtLeast - first, Victims::kFilesOnly}).blocks;
  return first + rest > 0;
}

void FullDisk::note(uint64_t free_before, uint64_t free_after) {
  MutexLock lock(mu_);
  futile_ = free_after > free_before ? 0 : futile_ + 1;
  free_then_ = free_after;
}

}  // namespace kvkeep
