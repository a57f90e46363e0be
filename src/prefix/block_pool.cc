#include "kvkeep/block_pool.h"

#include <algorithm>
#include <unordered_map>

#include "base/guarded.h"
#include "base/mutex.h"

namespace kvkeep {
namespace {

constexpr BlockId kNone = UINT32_MAX;

}  // namespace

// Blocks without references are in one list by use: those without a key at the front, where the
// next one is taken from.
struct BlockPool::State {
  struct Slot {
    PoolBlock block;
    BlockId before = kNone;
    BlockId after = kNone;
    bool listed = false;
  };

  explicit State(size_t limit) : max_blocks(limit) {}

  mutable Mutex mu;  // A leaf lock.
  const size_t max_blocks;
  std::vector<Slot> slots KVKEEP_GUARDED_BY(mu);
  std::unordered_map<BlockHash, BlockId> by_hash KVKEEP_GUARDED_BY(mu);
  BlockId front KVKEEP_GUARDED_BY(mu) = kNone;
  BlockId back KVKEEP_GUARDED_BY(mu) = kNone;
  uint64_t recycled KVKEEP_GUARDED_BY(mu) = 0;

  Slot* slot_of(BlockId id) KVKEEP_REQUIRES(mu) { return id < slots.size() ? &slots[id] : nullptr; }
  // Held, or known by a key.
  Slot* used(BlockId id) KVKEEP_REQUIRES(mu) {
    Slot* slot = slot_of(id);
    return slot != nullptr && (slot->block.ref_count > 0 || slot->block.hash) ? slot : nullptr;
  }
  void unlist(Slot& slot) KVKEEP_REQUIRES(mu);
  void list(Slot& slot) KVKEEP_REQUIRES(mu);
  void drop_hash(Slot& slot) KVKEEP_REQUIRES(mu);
  void add_ref(Slot& slot) KVKEEP_REQUIRES(mu);
  void drop_ref(Slot& slot) KVKEEP_REQUIRES(mu);
  Slot* take() KVKEEP_REQUIRES(mu);
  void set_hash(Slot& slot, const BlockHash& hash, uint64_t generation) KVKEEP_REQUIRES(mu);
  Slot* known_or_new(const PoolKey& key) KVKEEP_REQUIRES(mu);
  void make_room(size_t more) KVKEEP_REQUIRES(mu);
};

void BlockPool::State::unlist(Slot& slot) {
  if (!slot.listed) return;
  (slot.before == kNone ? front : slots[slot.before].after) = slot.after;
  (slot.after == kNone ? back : slots[slot.after].before) = slot.before;
  slot.before = slot.after = kNone;
  slot.listed = false;
}

void BlockPool::State::list(Slot& slot) {
  const bool first = !slot.block.hash;
  slot.before = first ? kNone : back;
  slot.after = first ? front : kNone;
  (slot.before == kNone ? front : slots[slot.before].after) = slot.block.id;
  (slot.after == kNone ? back : slots[slot.after].before) = slot.block.id;
  slot.listed = true;
}

void BlockPool::State::drop_hash(Slot& slot) {
  if (!slot.block.hash) return;
  by_hash.erase(*slot.block.hash);
  slot.block.hash.reset();
  slot.block.generation = 0;
}

void BlockPool::State::add_ref(Slot& slot) {
  unlist(slot);
  ++slot.block.ref_count;
}

void BlockPool::State::drop_ref(Slot& slot) {
  if (--slot.block.ref_count == 0) list(slot);
}

// With one reference and nothing else; null if requests hold all.
BlockPool::State::Slot* BlockPool::State::take() {
  if ((front == kNone || slots[front].block.hash) && slots.size() < max_blocks) {
    slots.emplace_back();
    slots.back().block.id = static_cast<BlockId>(slots.size() - 1);
    slots.back().block.ref_count = 1;
    return &slots.back();
  }
  if (front == kNone) return nullptr;
  Slot& slot = slots[front];
  recycled += slot.block.hash ? 1 : 0;
  drop_hash(slot);
  add_ref(slot);
  slot.block.token_count = 0;
  return &slot;
}

void BlockPool::State::set_hash(Slot& slot, const BlockHash& hash, uint64_t generation) {
  const auto [at, is_new] = by_hash.try_emplace(hash, slot.block.id);
  if (!is_new && at->second != slot.block.id) {
    Slot& former = slots[at->second];
    former.block.hash.reset();
    if (former.listed) {  // Among those without a key from now on.
      unlist(former);
      list(former);
    }
    at->second = slot.block.id;
  }
  if (slot.block.hash && !(*slot.block.hash == hash)) by_hash.erase(*slot.block.hash);
  slot.block.hash = hash;
  slot.block.generation = generation;
}

// REQUIRES: room for one more slot, so that only the first step needs memory.
BlockPool::State::Slot* BlockPool::State::known_or_new(const PoolKey& key) {
  const auto [at, is_new] = by_hash.try_emplace(key.hash, kNone);
  Slot* slot = is_new ? take() : &slots[at->second];
  if (slot == nullptr) {
    by_hash.erase(at);
    return nullptr;
  }
  if (is_new) {
    at->second = slot->block.id;
    slot->block.hash = key.hash;
    slot->block.token_count = key.token_count;
  } else {
    add_ref(*slot);
  }
  slot->block.generation = key.generation;
  return slot;
}

void BlockPool::State::make_room(size_t more) {
  const size_t needed = std::min(max_blocks, slots.size() + more);
  if (needed > slots.capacity())
    slots.reserve(std::min(max_blocks, std::max(needed, slots.size() * 2)));
}

BlockPool::BlockPool(uint32_t block_size, size_t max_blocks)
    : block_size_(block_size),
      max_blocks_(max_blocks < kNone ? max_blocks : kNone),
      state_(std::make_unique<State>(max_blocks_)) {}

BlockPool::~BlockPool() = default;

Result<BlockId> BlockPool::allocate() {
  return guarded(Asked::kOther, [&]() -> Result<BlockId> {
    MutexLock lock(state_->mu);
    const State::Slot* slot = state_->take();
    if (slot != nullptr) return slot->block.id;
    return Status(Code::kResourceExhausted, "the block pool is full: requests hold all of its " +
                                                std::to_string(max_blocks_) + " blocks");
  });
}

std::optional<PoolBlock> BlockPool::get(BlockId id) const {
  MutexLock lock(state_->mu);
  const State::Slot* slot = state_->slot_of(id);
  if (slot == nullptr) return std::nullopt;
  return slot->block;
}

bool BlockPool::ref(BlockId id) {
  MutexLock lock(state_->mu);
  State::Slot* slot = state_->used(id);
  if (slot != nullptr) state_->add_ref(*slot);
  return slot != nullptr;
}

bool BlockPool::unref(BlockId id) {
  MutexLock lock(state_->mu);
  State::Slot* slot = state_->slot_of(id);
  if (slot == nullptr || slot->block.ref_count == 0) return false;
  state_->drop_ref(*slot);
  return true;
}

bool BlockPool::register_hash(BlockId id, const BlockHash& hash, uint64_t generation) {
  return guarded_or(false, [&] {
    MutexLock lock(state_->mu);
    State::Slot* slot = state_->used(id);
    if (slot != nullptr) state_->set_hash(*slot, hash, generation);
    return slot != nullptr;
  });
}

std::optional<BlockId> BlockPool::find(const BlockHash& hash) const {
  MutexLock lock(state_->mu);
  const auto known = state_->by_hash.find(hash);
  if (known == state_->by_hash.end()) return std::nullopt;
  return known->second;
}

void BlockPool::forget(const BlockHash& hash) {
  MutexLock lock(state_->mu);
  const auto known = state_->by_hash.find(hash);
  if (known == state_->by_hash.end()) return;
  State::Slot& slot = state_->slots[known->second];
  const bool listed = slot.listed;
  state_->unlist(slot);
  state_->drop_hash(slot);
  if (listed) state_->list(slot);
}

std::vector<BlockId> BlockPool::acquire(std::span<const PoolKey> keys) {
  std::vector<BlockId> ids;
  guarded_task([&] {
    ids.reserve(keys.size());
    MutexLock lock(state_->mu);
    state_->make_room(keys.size());
    for (const PoolKey& key : keys) {
      const State::Slot* slot = state_->known_or_new(key);
      if (slot == nullptr) break;
      ids.push_back(slot->block.id);
    }
  });
  return ids;
}

void BlockPool::release(std::span<const BlockId> ids) {
  MutexLock lock(state_->mu);
  for (size_t i = ids.size(); i-- > 0;) {
    State::Slot* slot = state_->slot_of(ids[i]);
    if (slot != nullptr && slot->block.ref_count > 0) state_->drop_ref(*slot);
  }
}

PoolStats BlockPool::stats() const {
  MutexLock lock(state_->mu);
  PoolStats stats;
  stats.max_blocks = max_blocks_;
  stats.recycled_blocks = state_->recycled;
  for (const State::Slot& slot : state_->slots) {
    stats.held_blocks += slot.block.ref_count > 0 ? 1 : 0;
    stats.shared_blocks += slot.block.ref_count > 1 ? 1 : 0;
    stats.known_blocks += slot.block.ref_count == 0 && slot.block.hash ? 1 : 0;
  }
  return stats;
}

}  // namespace kvkeep
