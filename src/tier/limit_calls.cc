// The calls of TieredCache that are about its limit.
#include "tier/reclaimer.h"
#include "tier/store_notes.h"
#include "tier/tiered_cache.h"

namespace kvkeep {

Result<size_t> TieredCache::clear() {
  const CallGate::Pass pass(state_->gate);
  if (!pass)
    return Status(Code::kFailedPrecondition, Refusal::kRefusedClosed, "the cache is closed");
  size_t removed = 0;
  Status failed;
  for (const BlockHash& hash : state_->index.keys()) {
    const Result<bool> gone = remove_block(*state_, hash, Leased::kRemove);
    if (!gone.ok()) {
      failed = gone.status();
    } else if (*gone) {
      ++removed;
    }
  }
  if (failed.ok()) return removed;
  return Status::from_errno(
      Code::kUnavailable, std::to_string(removed) + " blocks removed, not all: " + failed.message(),
      failed.sys_errno());
}

uint64_t TieredCache::enforce_size_limit() {
  const CallGate::Pass pass(state_->gate);
  if (!pass || !state_->has_disk()) return 0;
  state_->disk_space->refresh();
  return Reclaimer(*state_).enforce_limit();
}

EvictionReport TieredCache::make_room(uint64_t incoming, std::optional<size_t> max_unlinks,
                                      bool unbounded) {
  const CallGate::Pass pass(state_->gate);
  if (!pass || !state_->has_disk()) return {};
  state_->disk_space->refresh();
  const uint64_t most =
      unbounded ? UINT64_MAX : max_unlinks.value_or(state_->options.max_inline_unlinks_per_save);
  return Reclaimer(*state_).make_room(incoming, most);
}

uint64_t TieredCache::max_size() const {
  if (!state_->has_disk()) return state_->options.max_size_bytes;
  const CallGate::Pass pass(state_->gate);
  if (pass) state_->disk_space->refresh();
  return state_->disk_space->effective();
}

uint64_t TieredCache::configured_max_size() const {
  return state_->has_disk() ? state_->disk_space->configured() : state_->options.max_size_bytes;
}

void TieredCache::set_configured_max_size(uint64_t bytes) {
  if (!state_->has_disk()) return;
  state_->disk_space->set_configured(bytes);
  const CallGate::Pass pass(state_->gate);
  if (pass) note_limit(state_);
}

}  // namespace kvkeep
