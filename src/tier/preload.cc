#include "tier/preload.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <unordered_set>
#include <vector>

#include "base/bytes.h"
#include "base/mutex.h"
#include "io/file_system.h"

namespace kvkeep {
namespace {

// What the calling thread and its helpers work on. A helper that starts after the caller has left
// finds nothing to take, and touches nothing else.
class Work {
 public:
  Work(BlockLoader& loader, std::vector<BlockHash> keys)
      : loader_(loader), keys_(std::move(keys)) {}

  void run() {
    while (const BlockHash* hash = take()) {
      const bool warm = loader_.warm(*hash);
      MutexLock lock(mu_);
      loaded_ += warm ? 1 : 0;
      --running_;
      ended_.notify_all();
    }
  }
  // Once everything taken has ended.
  size_t loaded() {
    MutexLock lock(mu_);
    while (running_ > 0) ended_.wait(mu_);
    return loaded_;
  }

 private:
  const BlockHash* take() {
    MutexLock lock(mu_);
    if (next_ == keys_.size()) return nullptr;
    ++running_;
    return &keys_[next_++];
  }

  BlockLoader& loader_;
  const std::vector<BlockHash> keys_;
  Mutex mu_;
  CondVar ended_;
  size_t next_ KVKEEP_GUARDED_BY(mu_) = 0;
  size_t running_ KVKEEP_GUARDED_BY(mu_) = 0;
  size_t loaded_ KVKEEP_GUARDED_BY(mu_) = 0;
};

// Blocks that have to be read, as far as the hot tier has room for them, in the order of `keys`.
// Those already hot become the most recent.
std::vector<BlockHash> select(CacheState& state, std::span<const BlockHash> keys) {
  std::vector<BlockHash> selected;
  std::unordered_set<BlockHash> seen;
  uint64_t room = state.hot.remaining_bytes();
  for (const BlockHash& hash : keys) {
    if (!seen.insert(hash).second) continue;
    uint64_t bytes = 0;
    {
      LockedEntry locked(state.index, hash);
      const Entry* entry = locked.get();
      if (entry == nullptr || entry->pending != nullptr) continue;
      if (entry->hot != nullptr) {
        state.hot.touch(hash);
        continue;
      }
      if (!entry->loadable(state.clock().mono())) continue;
      bytes = state.pool->rounded_bytes(round_up(entry->file.file_bytes, kIoAlign));
    }
    if (bytes > room) break;
    room -= bytes;
    selected.push_back(hash);
  }
  return selected;
}

void read_all(CacheState& state, const std::shared_ptr<Work>& work, size_t blocks) {
  const size_t workers = std::min<size_t>(state.options.preload_max_workers, blocks);
  for (size_t i = 1; i < workers; ++i) {
    state.environment.executor->post([work] { work->run(); });
  }
  work->run();
}

}  // namespace

size_t preload_blocks(CacheState& state, BlockLoader& loader, std::span<const BlockHash> keys) {
  if (!state.hot.enabled() || !state.has_disk()) return 0;
  const std::vector<BlockHash> selected = select(state, keys);
  if (selected.empty() || selected.size() < state.options.preload_min_blocks) return 0;
  const Duration start = state.clock().mono();
  const auto work = std::make_shared<Work>(loader, selected);
  read_all(state, work, selected.size());
  const size_t loaded = work->loaded();
  for (const BlockHash& hash : selected) state.hot.touch(hash);  // In the order of the prompt.
  const Duration spent = state.clock().mono() - start;
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(spent).count();
  state.stats.add(
      {{&CacheStats::preload_calls},
       {&CacheStats::preload_blocks_loaded, loaded},
       {&CacheStats::preload_time_ms, static_cast<uint64_t>(std::max<int64_t>(ms, 1))}});
  return loaded;
}

}  // namespace kvkeep
