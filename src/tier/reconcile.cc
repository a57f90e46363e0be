#include "tier/reconcile.h"

#include <new>
#include <unordered_set>

#include "tier/store_opening.h"

namespace kvkeep {
namespace {

// One run. Entries that a save, an eviction or a load changed since it began are left alone: what
// was listed of them is older than what the index knows.
class Reconciliation {
 public:
  explicit Reconciliation(CacheState& state)
      : state_(state), last_generation_(state.last_file_generation) {}

  Status run();

 private:
  bool wants_header(const BlockHash& hash, const FileStat& stat);
  void take(FoundBlock found);
  void take_up(FoundBlock found);
  void recharge(const FoundBlock& found);
  void put(Entry& entry, Stock stock);
  void forget_vanished();
  bool has_vanished(const BlockHash& hash, uint64_t& generation);
  void forget(const BlockHash& hash, uint64_t generation);
  bool is_settled(const Entry* entry) const;
  void count(const ScanReport& report);

  CacheState& state_;
  const uint64_t last_generation_;
  Duration now_{};
  std::unordered_set<BlockHash> seen_;
  uint64_t appeared_ = 0;
  uint64_t vanished_ = 0;
};

Status Reconciliation::run() {
  now_ = state_.clock().mono();
  const auto wanted = [this](const BlockHash& hash, const FileStat& stat) {
    return wants_header(hash, stat);
  };
  KVKEEP_TRY_ASSIGN(const ScanReport report,
                    state_.directory->relist(state_.clock().wall(), wanted,
                                             [this](FoundBlock found) { take(std::move(found)); }));
  forget_vanished();
  count(report);
  if (appeared_ + vanished_ > 0) {
    state_.log(LogLevel::kInfo, "others changed the store: " + std::to_string(appeared_) +
                                    " files appeared, " + std::to_string(vanished_) + " vanished");
  }
  return {};
}

bool Reconciliation::wants_header(const BlockHash& hash, const FileStat& stat) {
  if (state_.gate.is_closed()) return false;
  LockedEntry locked(state_.index, hash);
  const Entry* entry = locked.get();
  if (entry == nullptr) return true;
  if (entry->busy() || entry->file.generation > last_generation_) return false;
  return entry->file.state == FileState::kNone || entry->file.file_bytes != stat.size;
}

void Reconciliation::take(FoundBlock found) {
  seen_.insert(found.hash);
  if (found.listed_only) {
    recharge(found);
  } else {
    take_up(std::move(found));
  }
}

void Reconciliation::take_up(FoundBlock found) {
  const BlockHash hash = found.hash;
  Stock stock = classify(state_, std::move(found), now_);
  const uint64_t generation = stock.file.generation;
  {
    LockedEntry locked(state_.index, hash);
    const Entry* before = locked.get();
    if (before != nullptr && !is_settled(before)) return;
    const bool fresh = before == nullptr;
    Entry& entry = locked.get_or_add(stock.file.last_access);
    if (fresh) locked.set_parent(stock.parent);
    judge(state_, stock.file);  // What is expected may have changed since.
    put(entry, std::move(stock));
  }
  ++appeared_;
  state_.departed.forget(hash);
  // Removed by ourselves after it was listed: then nobody else would forget it.
  const Result<FileStat> stat = state_.directory->stat(hash);
  if (stat.status().code() == Code::kNotFound) forget(hash, generation);
}

void Reconciliation::put(Entry& entry, Stock stock) {
  state_.account->release(entry.file.allocated);
  state_.account->charge_found(stock.file.allocated);
  entry.file = std::move(stock.file);
}

// File systems that compress or allocate late change a file's charge after it was written.
void Reconciliation::recharge(const FoundBlock& found) {
  LockedEntry locked(state_.index, found.hash);
  Entry* entry = locked.get();
  if (!is_settled(entry) || entry->file.state == FileState::kNone) return;
  if (entry->file.file_bytes != found.file_bytes) return;
  state_.account->release(entry->file.allocated);
  state_.account->charge_found(found.allocated);
  entry->file.allocated = found.allocated;
}

void Reconciliation::forget_vanished() {
  for (const BlockHash& hash : state_.index.keys()) {
    uint64_t generation = 0;
    if (seen_.contains(hash) || !has_vanished(hash, generation)) continue;
    forget(hash, generation);
    ++vanished_;
  }
}

bool Reconciliation::has_vanished(const BlockHash& hash, uint64_t& generation) {
  {
    LockedEntry locked(state_.index, hash);
    const Entry* entry = locked.get();
    if (!is_settled(entry) || entry->file.state == FileState::kNone) return false;
    generation = entry->file.generation;
  }
  return state_.directory->stat(hash).status().code() == Code::kNotFound;
}

void Reconciliation::forget(const BlockHash& hash, uint64_t generation) {
  LockedEntry locked(state_.index, hash);
  Entry* entry = locked.get();
  if (entry == nullptr || entry->busy() || entry->file.generation != generation) return;
  state_.account->release(entry->file.allocated);
  entry->file = {};
  locked.erase_if_empty();
}

bool Reconciliation::is_settled(const Entry* entry) const {
  return entry != nullptr && !entry->busy() && entry->file.generation <= last_generation_;
}

void Reconciliation::count(const ScanReport& report) {
  state_.overhead_bytes = report.overhead_bytes;
  state_.account->set_overhead(report.overhead_bytes + state_.directory->leftover_bytes());
  state_.foreign_files = report.foreign_files;
  state_.foreign_bytes = report.foreign_bytes;
  state_.stats.add(&CacheStats::temp_files_removed, report.temp_files_removed);
}

}  // namespace

Status reconcile(CacheState& state) {
  const CallGate::Pass pass(state.gate);
  if (!pass) return {};
  state.disk_space->refresh();
  const Status done = Reconciliation(state).run();
  state.wake_writer();  // It brings the store under its limit, should it be over it now.
  return done;
}

namespace {

// What has no memory now has it in a minute.
void run_once(CacheState& state) {
  try {
    const Status done = reconcile(state);
    if (!done.ok()) state.log(LogLevel::kWarning, "cannot list the store: " + done.message());
  } catch (const std::bad_alloc&) {
    state.stats.add(&CacheStats::errors);
  }
}

}  // namespace

void reconcile_regularly(const std::shared_ptr<CacheState>& state) {
  const Duration interval = state->options.reconcile_interval;
  if (interval == Duration::zero() || !state->has_disk() || state->gate.is_closed()) return;
  state->environment.executor->post_after(interval, [weak = std::weak_ptr(state)] {
    const std::shared_ptr<CacheState> alive = weak.lock();
    if (alive == nullptr) return;
    run_once(*alive);
    reconcile_regularly(alive);
  });
}

}  // namespace kvkeep
