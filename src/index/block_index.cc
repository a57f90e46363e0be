#include "index/block_index.h"

#include <cassert>

namespace kvkeep {
namespace {

// Leaves the map again unless it is kept.
class NewEntry {
 public:
  using Entries = std::unordered_map<BlockHash, Entry>;
  NewEntry(Entries& entries, const BlockHash& hash)
      : entries_(entries), at_(entries.try_emplace(hash).first) {}
  ~NewEntry() {
    if (!kept_) entries_.erase(at_);
  }
  NewEntry(const NewEntry&) = delete;
  NewEntry& operator=(const NewEntry&) = delete;

  Entries::iterator operator->() { return at_; }
  Entries::iterator keep() {
    kept_ = true;
    return at_;
  }

 private:
  Entries& entries_;
  const Entries::iterator at_;
  bool kept_ = false;
};

// Among equally old blocks: what nobody can use first, what is not even written last.
uint8_t rank_of(const Entry& entry) {
  if (entry.pending != nullptr) return 2;
  return entry.file.state == FileState::kIncompatible ? 0 : 1;
}

}  // namespace

BlockIndex::~BlockIndex() = default;

IndexTotals BlockIndex::totals() const {
  return {totals_.entries, totals_.servable, totals_.files, totals_.incompatible,
          totals_.file_bytes};
}

std::vector<BlockHash> BlockIndex::keys() {
  return keys_where([](const Entry&) { return true; });
}

std::vector<BlockHash> BlockIndex::keys_where(const std::function<bool(const Entry&)>& pure) {
  std::vector<BlockHash> keys;
  for (Shard& shard : shards_) {
    MutexLock lock(shard.mu);
    for (const auto& [hash, entry] : shard.entries) {
      if (pure(entry)) keys.push_back(hash);
    }
  }
  return keys;
}

void BlockIndex::visit(const std::function<void(const Entry&)>& look) {
  for (Shard& shard : shards_) {
    MutexLock lock(shard.mu);
    for (const auto& [hash, entry] : shard.entries) look(entry);
  }
}

BlockIndex::Shard& BlockIndex::shard_of(const BlockHash& hash) {
  // The map inside the shard uses the low bits of the same value.
  return shards_[(hash.hash_value() >> 32) % kShards];
}

// Locked here and unlocked in the destructor, which the analysis cannot follow through a member.
LockedEntry::LockedEntry(BlockIndex& index, const BlockHash& hash) KVKEEP_NO_ANALYSIS
    : index_(index),
      hash_(hash),
      shard_(index.shard_of(hash)) {
  shard_.mu.lock();
  find();
}

LockedEntry::~LockedEntry() KVKEEP_NO_ANALYSIS {
  apply_change();
  shard_.mu.unlock();
}

Entry& LockedEntry::get_or_add(double used_at) {
  if (entry_ == nullptr) {
    NewEntry entry(shard_.entries, hash_);
    entry->second.order.hash = &entry->first;
    entry->second.file.last_access = used_at;
    index_.order_.add(entry->second.order, used_at);
    entry_ = &entry.keep()->second;
  }
  return *entry_;
}

void LockedEntry::touch(double now) {
  assert(entry_ != nullptr);
  entry_->file.last_access = now;
  index_.order_.touch(entry_->order, now);
}

void LockedEntry::put_first() {
  assert(entry_ != nullptr);
  index_.order_.put_first(entry_->order);
}

void LockedEntry::set_parent(const std::optional<BlockHash>& parent) {
  assert(entry_ != nullptr);
  index_.order_.set_parent(entry_->order, parent);
}

void LockedEntry::erase() {
  assert(entry_ != nullptr && !entry_->busy());
  index_.order_.remove(entry_->order);
  entry_ = nullptr;
  shard_.entries.erase(hash_);
}

void LockedEntry::erase_if_empty() {
  const bool in_memory = entry_->pending != nullptr || entry_->hot != nullptr;
  if (!in_memory && entry_->file.state == FileState::kNone) erase();
}

void LockedEntry::wait_until_idle() KVKEEP_NO_ANALYSIS {
  apply_change();
  while (entry_ != nullptr && entry_->busy()) {
    shard_.changed.wait(shard_.mu);
    find();
  }
  before_ = count();
}

IndexTotals LockedEntry::count() const {
  if (entry_ == nullptr) return {};
  const FileState state = entry_->file.state;
  const bool file = state == FileState::kDurable || state == FileState::kIncompatible;
  return {1, entry_->servable(), file, state == FileState::kIncompatible,
          file ? entry_->file.file_bytes : 0};
}

// Unsigned differences wrap, and the wrapped sum is right.
void LockedEntry::apply_change() {
  const IndexTotals now = count();
  apply_rank();
  if (now == before_) return;
  apply_tenure(now);
  index_.totals_.entries += now.entries - before_.entries;
  index_.totals_.servable += now.servable - before_.servable;
  index_.totals_.files += now.files - before_.files;
  index_.totals_.incompatible += now.incompatible - before_.incompatible;
  index_.totals_.file_bytes += now.file_bytes - before_.file_bytes;
}

void LockedEntry::apply_tenure(const IndexTotals& now) {
  if (entry_ == nullptr || now.servable == before_.servable) return;
  entry_->lease = {};
  if (now.servable > 0) entry_->tenure = ++index_.last_tenure_;
}

void LockedEntry::apply_rank() {
  if (entry_ == nullptr || rank_of(*entry_) == rank_) return;
  rank_ = rank_of(*entry_);
  index_.order_.set_rank(entry_->order, rank_);
}

void LockedEntry::find() {
  const auto it = shard_.entries.find(hash_);
  entry_ = it == shard_.entries.end() ? nullptr : &it->second;
  before_ = count();
  rank_ = entry_ == nullptr ? 0 : rank_of(*entry_);
}

}  // namespace kvkeep
