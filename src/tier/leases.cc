#include "tier/leases.h"

#include <algorithm>

#include "tier/cache_state.h"

namespace kvkeep {

// It keeps the state alive, so it may end after the cache.
class BlockHold final : public Lease::Hold {
 public:
  BlockHold(std::shared_ptr<CacheState> state, std::string_view owner, size_t at_most)
      : state_(std::move(state)), owner_(owner) {
    blocks_.reserve(at_most);
    state_->leases.add(*this);
  }
  ~BlockHold() override {
    state_->leases.remove(*this);
    for (const Held& held : blocks_) give_free(held);
  }
  BlockHold(const BlockHold&) = delete;
  BlockHold& operator=(const BlockHold&) = delete;

  // REQUIRES: the entry is locked, and no more than `at_most` blocks are held.
  void hold(const BlockHash& hash, Entry& entry, Duration until) {
    blocks_.push_back({hash, entry.tenure});
    ++entry.lease.holders;
    entry.lease.until = std::max(entry.lease.until, until);
  }
  bool holds(const BlockHash& hash) const {
    return std::any_of(blocks_.begin(), blocks_.end(),
                       [&](const Held& held) { return held.hash == hash; });
  }
  const std::string& owner() const { return owner_; }

 private:
  struct Held {
    BlockHash hash;
    uint64_t tenure = 0;
  };

  // A block that left and came back has lost its mark.
  void give_free(const Held& held) {
    LockedEntry locked(state_->index, held.hash);
    Entry* entry = locked.get();
    if (entry == nullptr || entry->tenure != held.tenure || entry->lease.holders == 0) return;
    if (--entry->lease.holders == 0) entry->lease.until = {};
  }

  const std::shared_ptr<CacheState> state_;
  const std::string owner_;
  std::vector<Held> blocks_;
};

namespace {

Source source_of(const Entry& entry) {
  if (entry.hot != nullptr) return Source::kHot;
  return entry.pending != nullptr ? Source::kPending : Source::kDisk;
}

}  // namespace

void LeaseBook::add(const BlockHold& hold) {
  MutexLock lock(mu_);
  holds_.insert(&hold);
}

void LeaseBook::remove(const BlockHold& hold) {
  MutexLock lock(mu_);
  holds_.erase(&hold);
}

std::string LeaseBook::owner_of(const BlockHash& hash) const {
  MutexLock lock(mu_);
  for (const BlockHold* hold : holds_) {
    if (hold->holds(hash)) return hold->owner();
  }
  return {};
}

Result<Lease> lease_blocks(const std::shared_ptr<CacheState>& state,
                           std::span<const BlockHash> keys, Duration ttl, std::string_view owner) {
  if (ttl <= Duration::zero()) {
    return Status(Code::kInvalidArgument, "ttl: must be above 0");
  }
  const Duration now = state->clock().mono();
  const Duration until = ttl < Duration::max() - now ? now + ttl : Duration::max();
  auto hold = std::make_unique<BlockHold>(state, owner, keys.size());
  std::vector<LeasedBlock> blocks;
  blocks.reserve(keys.size());
  for (const BlockHash& hash : keys) {
    LockedEntry locked(state->index, hash);
    Entry* entry = locked.get();
    if (entry == nullptr || !entry->servable()) break;
    hold->hold(hash, *entry, until);
    blocks.push_back({source_of(*entry), entry->tenure});
  }
  return Lease(std::move(blocks), std::move(hold));
}

SparedParent::SparedParent(BlockIndex& index, const std::optional<BlockHash>& parent)
    : index_(index), parent_(parent) {
  if (!parent_) return;
  LockedEntry locked(index_, *parent_);
  Entry* entry = locked.get();
  if (entry == nullptr || !entry->servable()) return;
  ++entry->lease.saving;
  tenure_ = entry->tenure;
}

SparedParent::~SparedParent() {
  if (tenure_ == 0) return;
  LockedEntry locked(index_, *parent_);
  Entry* entry = locked.get();
  if (entry != nullptr && entry->tenure == tenure_ && entry->lease.saving > 0)
    --entry->lease.saving;
}

Status leased_status(const CacheState& state, const BlockHash& hash) {
  const std::string owner = state.leases.owner_of(hash);
  return Status(Code::kFailedPrecondition, "block " + hash.short_hex() + " is leased" +
                                               (owner.empty() ? "" : " by " + owner) +
                                               ": release the lease, or force the deletion");
}

}  // namespace kvkeep
