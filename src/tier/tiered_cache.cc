#include "tier/tiered_cache.h"

#include <algorithm>

#include "base/guarded.h"
#include "disk/store_layout.h"
#include "kvkeep/size_string.h"
#include "tier/block_writer.h"
#include "tier/compatibility.h"
#include "tier/leases.h"
#include "tier/model_stats.h"
#include "tier/preload.h"
#include "tier/reconcile.h"
#include "tier/removal.h"
#include "tier/store_notes.h"
#include "tier/store_opening.h"

namespace kvkeep {
namespace {

constexpr unsigned kThreads = 2;  // One writes; the other lists, preloads and keeps the time.
constexpr uint64_t kPendingBytesAtMost = 512ull << 20;
constexpr uint64_t kQuarantineAtMost = 256ull << 20;
constexpr Duration kCloseWithin = std::chrono::seconds(60);
constexpr Duration kCloseHotWithin = std::chrono::seconds(120);

Status closed_status() {
  return Status(Code::kFailedPrecondition, Refusal::kRefusedClosed, "the cache is closed");
}

Environment complete(Environment environment) {
  if (environment.clock == nullptr) environment.clock = system_clock();
  if (environment.system == nullptr) environment.system = system_info();
  if (environment.logger == nullptr) environment.logger = stderr_logger();
  if (environment.executor == nullptr) environment.executor = make_thread_executor(kThreads);
  return environment;
}

uint64_t pending_bytes_limit(const Options& options, uint32_t cap) {
  if (options.pending_max_bytes) return *options.pending_max_bytes;
  // In double: the product of user-given figures may exceed 64 bits.
  const double expected = static_cast<double>(cap) *
                          static_cast<double>(options.block_size_tokens) *
                          static_cast<double>(options.kv_bytes_per_token);
  return expected < static_cast<double>(kPendingBytesAtMost) ? static_cast<uint64_t>(expected)
                                                             : kPendingBytesAtMost;
}

StoreDirectory::Settings directory_settings(const CacheState& state, std::string nonce) {
  const Options& options = state.options;
  StoreDirectory::Settings settings;
  settings.durability = options.durability;
  settings.quarantine_max_bytes = options.quarantine_max_bytes.value_or(
      std::min(options.max_size_bytes / 100, kQuarantineAtMost));
  settings.nonce = std::move(nonce);
  settings.root_name = options.cache_dir->string();
  settings.now = state.clock().wall();
  return settings;
}

// Options that are allowed and cost something later (DEF-56, RUL-16).
void warn_of_options(const CacheState& state) {
  if (!state.options.model_name.empty() && state.options.block_size == 0) {
    state.log(LogLevel::kWarning,
              "model_name without block_size: each block is stamped with its own token count, and "
              "caches that name a block_size will not serve those of another length");
  }
  if (state.options.profile == Profile::kSeedExact) {
    state.log(LogLevel::kWarning,
              "profile seed-exact: files are written without a digest, so damage to them is not "
              "noticed");
  }
}

}  // namespace

Result<std::unique_ptr<TieredCache>> TieredCache::open(Options options, Environment environment,
                                                       StoreSeams seams) {
  KVKEEP_TRY(validate(options));
  environment = complete(std::move(environment));
  const uint32_t cap = options.pending_cap.value_or(max_pending_writes(
      options.block_size_tokens, options.kv_bytes_per_token, *environment.system));
  const uint64_t bytes = pending_bytes_limit(options, cap);
  auto state = std::make_shared<CacheState>(std::move(options), std::move(environment), cap, bytes);
  state->pool = std::move(seams.pool);
  state->engine = std::move(seams.engine);
  state->hot.join(HotOwnerRef(std::shared_ptr<HotOwner>(state, &state->hot)));
  if (!state->options.hot_only) {
    KVKEEP_TRY_ASSIGN(state->directory,
                      StoreDirectory::open(std::move(seams.file_system),
                                           directory_settings(*state, std::move(seams.nonce))));
    write_opening_notes(*state);
    KVKEEP_TRY(take_stock(*state));
  }
  warn_of_options(*state);
  std::unique_ptr<TieredCache> cache(new TieredCache(state));
  reconcile_regularly(state);
  return cache;
}

TieredCache::TieredCache(std::shared_ptr<CacheState> state)
    : state_(std::move(state)), saver_(*state_), loader_(*state_) {
  state_->writer = std::make_shared<BlockWriter>(*state_);
  state_->wake_writer = [state = state_.get(), weak = std::weak_ptr(state_)] {
    state->writer->schedule(weak.lock());
  };
}

TieredCache::~TieredCache() {
  const auto report = guarded(Asked::kOther, [&] { return close(std::nullopt); });
  if (report.ok()) return;
  guarded_task([&] {
    state_->log(LogLevel::kWarning, "closed " +
                                        state_->options.cache_dir.value_or("None").string() + ": " +
                                        report.status().message());
  });
}

Result<SaveOutcome> TieredCache::save_block(const BlockHash& key, BlockInput block) {
  const CallGate::Pass pass(state_->gate);
  if (pass) return saver_.save(key, std::move(block));
  return saver_.count(closed_status());
}

Result<std::vector<LayerState>> TieredCache::load_block(const BlockHash& key) {
  KVKEEP_TRY_ASSIGN(LoadedBlock block, load_block_with_info(key, true));
  return std::move(block.layers);
}

Result<LoadedBlock> TieredCache::load_block_with_info(const BlockHash& key, bool promote) {
  return std::move(load_blocks({&key, 1}, BatchMode::kEach, {promote, {}}).front());
}

BatchResult TieredCache::load_blocks(std::span<const BlockHash> keys, BatchMode mode,
                                     const LoadOptions& how) {
  const CallGate::Pass pass(state_->gate);
  if (pass) return loader_.load(keys, mode, how);
  const Status closed(Code::kFailedPrecondition, MissReason::kClosed, "the cache is closed");
  BatchResult results(mode == BatchMode::kPrefix ? std::min<size_t>(keys.size(), 1) : keys.size(),
                      closed);
  for (const auto& result : results) loader_.count_miss(result.status());
  return results;
}

bool TieredCache::has_block(const BlockHash& key) const {
  const CallGate::Pass pass(state_->gate);
  if (!pass) return false;
  LockedEntry locked(state_->index, key);
  return locked.get() != nullptr && locked.get()->loadable(state_->clock().mono());
}

size_t TieredCache::preload(std::span<const BlockHash> keys) {
  const CallGate::Pass pass(state_->gate);
  return pass ? preload_blocks(*state_, loader_, keys) : 0;
}

Explanation TieredCache::why(const BlockHash& key) const {
  const CallGate::Pass pass(state_->gate);
  if (pass) return loader_.explain(key);
  return {{}, MissReason::kClosed, std::string(explain(MissReason::kClosed))};
}

std::optional<BlockMeta> TieredCache::block_meta(const BlockHash& key) const {
  const CallGate::Pass pass(state_->gate);
  if (!pass) return std::nullopt;
  BlockMeta meta{key, block_path(key), 0, 0, 0, {}};
  ImagePtr image;
  {
    LockedEntry locked(state_->index, key);
    const Entry* entry = locked.get();
    const bool listed = entry != nullptr && entry->servable() &&
                        (entry->pending != nullptr || entry->file.state == FileState::kDurable);
    if (!listed) return std::nullopt;
    if (entry->pending != nullptr) image = entry->pending->image;
    meta.file_size = image != nullptr ? image->file_bytes() : entry->file.file_bytes;
    meta.last_access = entry->file.last_access;
  }
  std::optional<BlockHeader> header;
  if (image != nullptr) {
    header = image->header();
  } else if (Result<BlockHeader> read = state_->directory->read_header(key); read.ok()) {
    header = *std::move(read);
  }
  if (!header) return std::nullopt;
  meta.created_at = header->created_at.value_or(meta.last_access);
  meta.info = std::move(header->info);
  return meta;
}

Result<Lease> TieredCache::lease(std::span<const BlockHash> keys, Duration ttl,
                                 std::string_view owner) {
  const CallGate::Pass pass(state_->gate);
  if (!pass) return closed_status();
  KVKEEP_TRY_ASSIGN(Lease lease, lease_blocks(state_, keys, ttl, owner));
  if (lease.size() < keys.size()) {
    // One that is served again by now, or only on trial, is not promised.
    const Explanation end = loader_.explain(keys[lease.size()]);
    lease.set_end(end.reason.value_or(MissReason::kSuspect));
  }
  return lease;
}

Result<bool> TieredCache::delete_block(const BlockHash& key, bool force) {
  const CallGate::Pass pass(state_->gate);
  if (!pass) return closed_status();
  return remove_block(*state_, key, force ? Leased::kRemove : Leased::kRefuse);
}

Result<bool> TieredCache::report_bad(const BlockHash& key) {
  const CallGate::Pass pass(state_->gate);
  if (!pass) return closed_status();
  return report_bad_block(*state_, key);
}

size_t TieredCache::clear_hot(HotClear how) {
  const CallGate::Pass pass(state_->gate);
  return pass ? state_->hot.clear(how) : 0;
}

uint64_t TieredCache::shrink_hot_to(uint64_t bytes, const HashSet& keep) {
  const CallGate::Pass pass(state_->gate);
  return pass ? state_->hot.shrink_to(bytes, keep) : 0;
}

void TieredCache::note_namespace(const BlockHash& root, const Namespace& fields) {
  const CallGate::Pass pass(state_->gate);
  if (pass) kvkeep::note_namespace(state_, root, fields);
}

void TieredCache::set_hot_max_bytes(uint64_t bytes) { state_->hot.set_max_bytes(bytes); }

bool TieredCache::forget_block(const BlockHash& key) {
  const CallGate::Pass pass(state_->gate);
  return pass && kvkeep::forget_block(*state_, key);
}

size_t TieredCache::evict_first(std::span<const BlockHash> keys) {
  const CallGate::Pass pass(state_->gate);
  if (!pass) return 0;
  size_t known = 0;
  for (const BlockHash& key : keys) {
    LockedEntry locked(state_->index, key);
    if (locked.get() == nullptr) continue;
    locked.put_first();
    ++known;
  }
  return known;
}

bool TieredCache::adopt_layer_types(std::span<const std::string> types) {
  const CallGate::Pass pass(state_->gate);
  return pass && kvkeep::adopt_layer_types(*state_, types);
}

bool TieredCache::set_expected_layer_types(std::span<const std::string> types,
                                           std::optional<double> turboquant_bits) {
  const CallGate::Pass pass(state_->gate);
  return pass && kvkeep::set_expected_layer_types(*state_, types, turboquant_bits);
}

size_t TieredCache::sweep_stale_layouts() {
  const CallGate::Pass pass(state_->gate);
  return pass ? kvkeep::sweep_stale_layouts(*state_) : 0;
}

ExpectedLayout TieredCache::expected_layout() const { return kvkeep::expected_layout(*state_); }

Result<FlushReport> TieredCache::flush(std::optional<Duration> limit) {
  const CallGate::Pass pass(state_->gate);
  if (!pass) return closed_status();
  std::optional<Duration> deadline;
  if (limit) deadline = state_->clock().mono() + *limit;
  const bool all_queued = state_->hot.write_dirty(false, deadline);
  state_->writer->catch_up(state_);
  WriteQueue::Report report = state_->queue.wait_finished(deadline);
  if (!report.in_time || !all_queued) {
    return Status(Code::kDeadlineExceeded,
                  std::to_string(state_->queue.blocks()) + " blocks are not written yet");
  }
  return FlushReport{report.written, std::move(report.failed)};
}

Result<CloseReport> TieredCache::close(std::optional<Duration> limit) {
  MutexLock lock(close_mu_);
  if (!report_) {
    const Duration usual = state_->hot.enabled() ? kCloseHotWithin : kCloseWithin;
    report_ = shut(limit.value_or(state_->options.close_deadline.value_or(usual)));
  }
  if (report_->abandoned.empty()) return *report_;
  return Status(Code::kDeadlineExceeded, std::to_string(report_->abandoned.size()) +
                                             " blocks were not written in time, the first " +
                                             report_->abandoned.front().short_hex());
}

CloseReport TieredCache::shut(Duration limit) {
  const Duration deadline = state_->clock().mono() + limit;
  state_->gate.close();
  state_->queue.close();  // Savers that wait for room leave.
  const bool left = state_->gate.wait_empty(state_->clock(), deadline);
  state_->hot.write_dirty(false, deadline);
  state_->writer->catch_up(state_);
  WriteQueue::Report queue = state_->queue.wait_finished(deadline);
  CloseReport report{queue.written, std::move(queue.failed), {}};
  report.abandoned = abandon_unwritten(report.failed);
  if (!report.abandoned.empty()) {
    state_->log(LogLevel::kWarning, "closing: " + std::to_string(report.flushed) +
                                        " blocks were written, " +
                                        std::to_string(report.abandoned.size()) + " were not");
  }
  state_->hot.leave();
  if (state_->has_disk()) close_store(deadline, left && queue.in_time);
  return report;
}

void TieredCache::close_store(Duration deadline, bool calls_have_left) {
  refresh_file_times(deadline);
  if (calls_have_left && state_->clock().mono() <= deadline) write_notes(*state_);
  // With a call still stuck in the system, the owner lock lasts until that call has ended (RUL-57).
  if (calls_have_left) state_->directory->release_owner();
}

// Whatever is not written by now will not be: a write that wakes up later only removes its own
// file. Blocks of the hot tier whose write failed are named as failed already.
std::vector<BlockHash> TieredCache::abandon_unwritten(const std::vector<BlockHash>& failed) {
  const HashSet named(failed.begin(), failed.end());
  std::vector<BlockHash> abandoned;
  for (const BlockHash& hash : state_->index.keys()) {
    std::unique_ptr<PendingBlock> cancelled;
    LockedEntry locked(state_->index, hash);
    if (locked.get() == nullptr) continue;
    const bool pending = locked.get()->pending != nullptr;
    const bool dirty = locked.get()->hot != nullptr && locked.get()->hot->dirty;
    if (!pending && !dirty) continue;
    state_->stats.add(&CacheStats::ssd_write_drops);
    if (pending || named.count(hash) == 0) abandoned.push_back(hash);
    if (pending && !locked.get()->busy()) cancelled = cancel_pending(*state_, locked, hash);
  }
  return abandoned;
}

// File times carry the order of last use over a restart.
void TieredCache::refresh_file_times(Duration deadline) {
  for (const BlockHash& hash : state_->index.keys()) {
    double used_at = 0;
    {
      LockedEntry locked(state_->index, hash);
      const Entry* entry = locked.get();
      if (entry == nullptr || !entry->file.used || entry->file.state != FileState::kDurable)
        continue;
      used_at = entry->file.last_access;
    }
    // A file that cannot be touched keeps its old time: the order is slightly off, nothing else.
    static_cast<void>(state_->directory->set_mtime(hash, used_at));
    if (state_->clock().mono() > deadline) return;
  }
}

CacheStats TieredCache::stats() const {
  CacheStats stats = state_->stats.snapshot();
  const IndexTotals totals = state_->index.totals();
  stats.num_files = totals.files;
  stats.num_blocks = totals.servable;
  stats.file_bytes = totals.file_bytes;
  stats.incompatible_files = totals.incompatible;
  stats.total_size_bytes = tracked_size();
  stats.max_size_bytes = stats.configured_max_size_bytes = configured_max_size();
  if (state_->has_disk()) {
    stats.allocated_bytes = state_->account->used();
    stats.max_size_bytes = state_->disk_space->effective();
    stats.free_bytes = state_->disk_space->free_bytes();
    stats.min_free_bytes = state_->disk_space->min_free_bytes();
  }
  stats.foreign_files = state_->foreign_files;
  stats.foreign_bytes = state_->foreign_bytes;
  stats.quarantine_bytes = state_->quarantine_bytes;
  stats.pending_blocks = state_->queue.blocks();
  stats.pending_bytes = state_->queue.bytes();
  const HotBudget::Share hot = state_->hot.share();
  stats.hot_cache_entries = hot.blocks;
  stats.hot_cache_size_bytes = hot.bytes;
  stats.hot_cache_max_bytes = state_->hot.max_bytes();
  stats.hot_dirty_blocks = state_->hot.dirty_blocks();
  stats.ram_bytes = state_->pool->in_use_bytes();
  // Read one after the other, so the sum may be off for a moment.
  const uint64_t held = stats.hot_cache_size_bytes + stats.pending_bytes;
  stats.lent_bytes = stats.ram_bytes - std::min(stats.ram_bytes, held);
  return stats;
}

ModelStats TieredCache::stats_for_model(std::string_view model_name) const {
  ModelStats stats = model_stats(*state_, model_name);
  stats.max_size_bytes = max_size();
  stats.hot_cache_max_bytes = state_->hot.max_bytes();
  return stats;
}

std::string TieredCache::stats_json() const { return kvkeep::stats_json(*state_, stats()); }

size_t TieredCache::size() const {
  return state_->gate.is_closed() ? 0 : state_->index.totals().servable;
}

uint64_t TieredCache::tracked_size() const {
  return state_->has_disk() ? state_->account->tracked() : 0;
}

size_t TieredCache::tracked_count() const { return state_->index.totals().entries; }

std::filesystem::path TieredCache::block_path(const BlockHash& key) const {
  if (!state_->options.cache_dir) return {};
  return *state_->options.cache_dir / kvkeep::block_path(key);
}

std::string TieredCache::debug_string() const {
  return "TieredBlockCache(dir=" + state_->options.cache_dir.value_or("None").string() +
         ", size=" + format_bytes(tracked_size()) + "/" + format_bytes(max_size()) +
         ", files=" + std::to_string(state_->index.totals().files) + ")";
}

}  // namespace kvkeep
