#include "tier/store_opening.h"

#include <algorithm>
#include <vector>

#include "kvkeep/size_string.h"
#include "tier/reclaimer.h"

namespace kvkeep {
namespace {

constexpr uint64_t kLeastHeadroom = 64 * 1024;

void add(CacheState& state, Stock stock) {
  state.account->charge_found(stock.file.allocated);
  LockedEntry locked(state.index, stock.hash);
  locked.get_or_add(stock.file.last_access).file = std::move(stock.file);
  locked.set_parent(stock.parent);
}

// Room for directories to grow (RUL-53), where the file system charges directories at all.
uint64_t least_headroom(const CacheState& state) {
  const Result<FileStat> root = state.directory->file_system().stat("");
  return root.ok() && root->allocated == 0 ? 0 : kLeastHeadroom;
}

void shrink_to_limit(CacheState& state) {
  const uint64_t over = state.account->shortfall(0);
  if (over == 0) return;
  state.log(LogLevel::kWarning, "the store holds " + format_bytes(state.account->used()) + " in " +
                                    std::to_string(state.index.totals().files) + " files, " +
                                    format_bytes(over) + " over its limit of " +
                                    format_bytes(state.account->limit()) +
                                    ": removing the least recently used");
  Reclaimer(state).make_room(0, UINT64_MAX);
}

std::unique_ptr<DiskSpace> watch_disk(CacheState& state) {
  DiskSpace::Settings settings;
  settings.configured = state.options.max_size_bytes;
  settings.min_free_bytes = state.options.min_free_bytes;
  settings.snapshot_ttl = state.options.disk_snapshot_ttl;
  settings.pressure_warn_interval = state.options.pressure_warn_interval;
  return std::make_unique<DiskSpace>(state.directory->file_system(), *state.account,
                                     state.environment.clock, state.environment.logger, settings);
}

// The one line that says what was opened, and how large it may become.
void announce(const CacheState& state, const ScanReport& report) {
  const IndexTotals totals = state.index.totals();
  std::string text = "SSD cache scan complete: " + state.options.cache_dir->string() + ", " +
                     std::to_string(totals.servable) + " blocks served, " +
                     format_bytes(state.account->used()) + " of " +
                     format_bytes(state.account->limit()) + ", " +
                     format_bytes(state.disk_space->free_bytes()) + " free, hot tier " +
                     format_bytes(state.hot.max_bytes());
  if (totals.incompatible > 0) {
    text += ", skipped_incompatible=" + std::to_string(totals.incompatible) + " blocks";
  }
  if (report.foreign_files > 0) text += ", foreign files " + std::to_string(report.foreign_files);
  state.log(LogLevel::kInfo, text);
  state.emit(EventKind::kScanDone, nullptr, state.account->used(), totals.servable);
}

}  // namespace

Stock classify(CacheState& state, FoundBlock found, Duration now) {
  Stock stock{found.hash, {}, {}};
  BlockFile& file = stock.file;
  file.state = FileState::kIncompatible;
  file.why = found.why;
  file.generation = ++state.last_file_generation;
  file.file_bytes = found.file_bytes;
  file.allocated = found.allocated;
  file.last_access = found.mtime;
  file.verified = now;
  if (!found.header) return stock;
  file.layout = state.layouts.intern(*found.header);
  stock.parent = found.header->info.parent;
  judge(state, file);
  return stock;
}

void judge(CacheState& state, BlockFile& file) {
  if (file.layout == nullptr) return;
  const auto why = incompatibility(*state.expectation.get(), *file.layout);
  file.state = why ? FileState::kIncompatible : FileState::kDurable;
  file.why = why.value_or(MissReason::kAbsent);
}

Status take_stock(CacheState& state) {
  std::vector<Stock> stocks;
  const Duration now = state.clock().mono();
  KVKEEP_TRY_ASSIGN(const ScanReport report,
                    state.directory->scan(state.clock().wall(), [&](FoundBlock found) {
                      stocks.push_back(classify(state, std::move(found), now));
                    }));
  state.account =
      std::make_unique<SpaceAccount>(state.options.max_size_bytes, least_headroom(state));
  state.disk_space = watch_disk(state);
  state.overhead_bytes = report.overhead_bytes;
  state.account->set_overhead(report.overhead_bytes);
  state.account->charge_found(report.quarantine_bytes);
  state.quarantine_bytes = report.quarantine_bytes;
  state.foreign_files = report.foreign_files;
  state.foreign_bytes = report.foreign_bytes;
  state.stats.add(&CacheStats::temp_files_removed, report.temp_files_removed);
  if (state.account->largest_block() == 0) {
    return Status(
        Code::kInvalidArgument,
        "max_size_bytes: " + format_bytes(state.options.max_size_bytes) +
            " leaves no room beside the store's own directories and reserve; give at least " +
            format_bytes(report.overhead_bytes + state.account->headroom() + (1 << 20)));
  }
  for (Stock& stock : stocks) add(state, std::move(stock));
  shrink_to_limit(state);
  state.disk_space->refresh();
  announce(state, report);
  return {};
}

}  // namespace kvkeep
