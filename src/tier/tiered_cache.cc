#include "tier/tiered_cache.h"

#include <algorithm>

#include "disk/store_layout.h"
#include "kvkeep/size_string.h"
#include "tier/block_writer.h"
#include "tier/removal.h"
#include "tier/store_opening.h"

namespace kvkeep {
namespace {

constexpr uint64_t kPendingBytesAtMost = 512ull << 20;
constexpr uint64_t kQuarantineAtMost = 256ull << 20;

Status closed_status() {
  return Status(Code::kFailedPrecondition, Refusal::kRefusedClosed, "the cache is closed");
}

Environment complete(Environment environment) {
  if (environment.clock == nullptr) environment.clock = system_clock();
  if (environment.system == nullptr) environment.system = system_info();
  if (environment.logger == nullptr) environment.logger = stderr_logger();
  if (environment.executor == nullptr) environment.executor = make_thread_executor(1);
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
  KVKEEP_TRY_ASSIGN(state->directory,
                    StoreDirectory::open(std::move(seams.file_system),
                                         directory_settings(*state, std::move(seams.nonce))));
  KVKEEP_TRY(take_stock(*state));
  return std::unique_ptr<TieredCache>(new TieredCache(std::move(state)));
}

TieredCache::TieredCache(std::shared_ptr<CacheState> state)
    : state_(std::move(state)), saver_(*state_), loader_(*state_) {
  const auto writer = std::make_shared<BlockWriter>(*state_);
  state_->wake_writer = [writer, weak = std::weak_ptr(state_)] { writer->schedule(weak.lock()); };
}

TieredCache::~TieredCache() {
  const Result<CloseReport> report = close(std::nullopt);
  if (report.ok()) return;
  state_->log(LogLevel::kWarning,
              "closed " + state_->options.cache_dir->string() + ": " + report.status().message());
}

Result<SaveOutcome> TieredCache::save_block(const BlockHash& key, BlockInput block) {
  const CallGate::Pass pass(state_->gate);
  if (pass) return saver_.save(key, std::move(block));
  return saver_.count(closed_status());
}

Result<std::vector<LayerState>> TieredCache::load_block(const BlockHash& key) {
  KVKEEP_TRY_ASSIGN(LoadedBlock block, load_block_with_info(key));
  return std::move(block.layers);
}

Result<LoadedBlock> TieredCache::load_block_with_info(const BlockHash& key) {
  return std::move(load_blocks({&key, 1}, BatchMode::kEach).front());
}

BatchResult TieredCache::load_blocks(std::span<const BlockHash> keys, BatchMode mode) {
  const CallGate::Pass pass(state_->gate);
  if (pass) return loader_.load(keys, mode);
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
  return locked.get() != nullptr && locked.get()->servable();
}

std::optional<BlockMeta> TieredCache::block_meta(const BlockHash& key) const {
  const CallGate::Pass pass(state_->gate);
  if (!pass) return std::nullopt;
  BlockMeta meta{key, block_path(key), 0, 0, 0, {}};
  ImagePtr image;
  {
    LockedEntry locked(state_->index, key);
    const Entry* entry = locked.get();
    if (entry == nullptr || !entry->servable()) return std::nullopt;
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

Result<bool> TieredCache::delete_block(const BlockHash& key) {
  const CallGate::Pass pass(state_->gate);
  if (!pass) return closed_status();
  return remove_block(*state_, key);
}

Result<FlushReport> TieredCache::flush(std::optional<Duration> limit) {
  const CallGate::Pass pass(state_->gate);
  if (!pass) return closed_status();
  std::optional<Duration> deadline;
  if (limit) deadline = state_->clock().mono() + *limit;
  WriteQueue::Report report = state_->queue.wait_finished(deadline);
  if (!report.in_time) {
    return Status(Code::kDeadlineExceeded,
                  std::to_string(state_->queue.blocks()) + " blocks are not written yet");
  }
  return FlushReport{report.written, std::move(report.failed)};
}

Result<CloseReport> TieredCache::close(std::optional<Duration> limit) {
  MutexLock lock(close_mu_);
  if (!report_) report_ = shut(limit.value_or(state_->options.close_deadline));
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
  WriteQueue::Report queue = state_->queue.wait_finished(deadline);
  CloseReport report{queue.written, std::move(queue.failed), {}};
  if (!queue.in_time) report.abandoned = abandon_pending();
  refresh_file_times(deadline);
  // With a call still stuck in the system, the owner lock lasts until that call has ended (RUL-57).
  if (left && queue.in_time) state_->directory->release_owner();
  return report;
}

// Whatever is not written by now will not be: a write that wakes up later only removes its own
// file.
std::vector<BlockHash> TieredCache::abandon_pending() {
  std::vector<BlockHash> abandoned;
  for (const BlockHash& hash : state_->index.keys()) {
    std::unique_ptr<PendingBlock> cancelled;
    LockedEntry locked(state_->index, hash);
    if (locked.get() == nullptr || locked.get()->pending == nullptr) continue;
    abandoned.push_back(hash);
    if (!locked.get()->busy()) cancelled = cancel_pending(*state_, locked, hash);
  }
  state_->stats.add(&CacheStats::ssd_write_drops, abandoned.size());
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
  stats.total_size_bytes = state_->account->tracked();
  stats.allocated_bytes = state_->account->used();
  stats.max_size_bytes = max_size();
  stats.configured_max_size_bytes = state_->options.max_size_bytes;
  stats.foreign_files = state_->foreign_files;
  stats.foreign_bytes = state_->foreign_bytes;
  stats.quarantine_bytes = state_->quarantine_bytes;
  stats.pending_blocks = state_->queue.blocks();
  stats.pending_bytes = state_->queue.bytes();
  stats.ram_bytes = state_->pool->in_use_bytes();
  return stats;
}

size_t TieredCache::size() const {
  return state_->gate.is_closed() ? 0 : state_->index.totals().servable;
}

uint64_t TieredCache::max_size() const { return state_->account->limit(); }

uint64_t TieredCache::tracked_size() const { return state_->account->tracked(); }

size_t TieredCache::tracked_count() const { return state_->index.totals().entries; }

std::filesystem::path TieredCache::block_path(const BlockHash& key) const {
  return *state_->options.cache_dir / kvkeep::block_path(key);
}

std::string TieredCache::debug_string() const {
  return "TieredBlockCache(dir=" + state_->options.cache_dir->string() +
         ", size=" + format_bytes(tracked_size()) + "/" + format_bytes(max_size()) +
         ", files=" + std::to_string(state_->index.totals().files) + ")";
}

}  // namespace kvkeep
