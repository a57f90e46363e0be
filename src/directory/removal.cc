#include "directory/removal.h"

#include <set>
#include <string>
#include <unordered_set>
#include <utility>

#include "directory/verification.h"
#include "disk/store_layout.h"

namespace kvkeep {
namespace {

std::vector<RemovalCandidate> candidates_of(const RemovalStock& stock) {
  std::vector<RemovalCandidate> candidates;
  candidates.reserve(stock.records.size());
  for (const BlockRecord& record : stock.records) {
    candidates.push_back(
        {record.meta.hash, record.meta.info.parent, record.meta.last_access, record.allocated});
  }
  return candidates;
}

RemovalPlan plan_of(const RemovalStock& stock, const RemovalOrder& order,
                    const std::vector<size_t>& chosen) {
  RemovalPlan plan;
  plan.store_bytes = stock.store_bytes;
  for (const size_t at : chosen) {
    plan.blocks.push_back(order.blocks()[at].hash);
    plan.bytes.push_back(order.blocks()[at].allocated);
  }
  return plan;
}

using Hashes = std::unordered_set<BlockHash>;

template <typename Wanted>
Hashes select(const RemovalStock& stock, const Wanted& wanted) {
  Hashes selected;
  for (const BlockRecord& record : stock.records) {
    if (wanted(record)) selected.insert(record.meta.hash);
  }
  return selected;
}

bool is_of_build(const BlockRecord& record, const std::string& build) {
  return record.name_space != nullptr && record.name_space->build() == build;
}

// When a block was written; of one that cannot be read, the file's time.
double written_at(const BlockRecord& record) {
  return record.state == BlockState::kOk ? record.meta.created_at : record.meta.last_access;
}

bool is_wanted(const BlockRecord& record, const RemoveOptions& options, double now) {
  if (options.all) return true;
  const bool filtered =
      !options.model_name.empty() || !options.build.empty() || options.newer_than_seconds;
  if (!filtered) return false;
  if (!options.model_name.empty() && record.meta.info.model_name != options.model_name)
    return false;
  if (!options.build.empty() && !is_of_build(record, options.build)) return false;
  return !options.newer_than_seconds || now - written_at(record) <= *options.newer_than_seconds;
}

void fail(RemovalReport& report, const Status& why) {
  if (report.failed++ == 0) report.first_failure = why;
}

// Removal is to outlive power loss: a block that comes back would be a surprise (RUL-54).
void sync_dirs(const std::set<std::string>& dirs, StoreDirectory& store, RemovalReport& report) {
  for (const std::string& dir : dirs) {
    const Status synced = store.file_system().sync_dir(dir);
    if (!synced.ok() && report.first_failure.ok()) report.first_failure = synced;
  }
}

}  // namespace

Result<RemovalStock> take_removal_stock(FileSystem& file_system, const std::filesystem::path& root,
                                        Leftovers leftovers, const RemovalProgress& progress) {
  RemovalStock stock;
  const auto add = [&](BlockRecord record) {
    record.meta.info.meta_states.reset();  // The largest parts are of no use here.
    record.meta.info.layer_types.reset();
    record.meta.info.signature.clear();
    stock.records.push_back(std::move(record));
    if (progress) progress(stock.records.size(), 0);
  };
  KVKEEP_TRY_ASSIGN(const DirectoryTotals totals, list_blocks(file_system, root, add, leftovers));
  stock.store_bytes = totals.store_bytes();
  return stock;
}

RemovalPlan plan_gc(const RemovalStock& stock, const GcOptions& options, double now) {
  const Hashes of_model = select(stock, [&](const BlockRecord& record) {
    return options.model_name.empty() || record.meta.info.model_name == options.model_name;
  });
  const RemovalOrder order(candidates_of(stock));
  const auto is_old = [&](const RemovalCandidate& block) {
    return options.older_than_seconds && now - block.last_access > *options.older_than_seconds;
  };
  uint64_t surplus = 0;
  if (options.max_size && stock.store_bytes > *options.max_size) {
    surplus = stock.store_bytes - *options.max_size;
  }
  return plan_of(stock, order, order.choose([&](const RemovalCandidate& block, uint64_t bytes) {
    return of_model.count(block.hash) == 1 && (bytes < surplus || is_old(block));
  }));
}

RemovalPlan plan_removal(const RemovalStock& stock, const RemoveOptions& options, double now) {
  Hashes selected =
      select(stock, [&](const BlockRecord& record) { return is_wanted(record, options, now); });
  selected.insert(options.keys.begin(), options.keys.end());
  const RemovalOrder order(candidates_of(stock));
  return plan_of(stock, order, order.with_descendants([&](const RemovalCandidate& block) {
    return selected.count(block.hash) == 1;
  }));
}

RemovalReport foretell(const RemovalPlan& plan) {
  RemovalReport report;
  report.blocks = plan.blocks.size();
  for (const uint64_t bytes : plan.bytes) report.bytes += bytes;
  report.bytes_left = plan.store_bytes - report.bytes;
  return report;
}

RemovalReport carry_out(const RemovalPlan& plan, StoreDirectory& store,
                        const RemovalProgress& progress) {
  RemovalReport report;
  std::set<std::string> dirs;
  for (size_t i = 0; i < plan.blocks.size(); ++i) {
    const Result<bool> removed = store.remove(plan.blocks[i]);
    if (!removed.ok()) {
      fail(report, removed.status());
    } else if (*removed) {
      ++report.blocks;
      report.bytes += plan.bytes[i];
      dirs.emplace(block_dir(plan.blocks[i]));
    }
    if (progress) progress(i + 1, plan.blocks.size());
  }
  report.bytes_left = plan.store_bytes - report.bytes;
  sync_dirs(dirs, store, report);
  return report;
}

RemovalReport quarantine(std::span<const BlockHash> keys, StoreDirectory& store,
                         uint64_t store_bytes) {
  RemovalReport report;
  report.bytes_left = store_bytes;
  std::set<std::string> dirs;
  BlockVerifier verifier(store.file_system(), make_file_pool());
  for (const BlockHash& key : keys) {
    uint64_t file_size = 0;
    if (verifier.verify(key, file_size).status().code() != Code::kDataLoss) continue;
    const Result<FileStat> stat = store.stat(key);
    if (!stat.ok()) continue;  // Gone meanwhile.
    const Result<QuarantineReport> moved = store.quarantine(key, stat->allocated);
    if (!moved.ok()) {
      fail(report, moved.status());
      continue;
    }
    ++report.blocks;
    report.bytes += stat->allocated;
    report.bytes_left += moved->added_bytes;
    report.bytes_left -= moved->removed_bytes + stat->allocated;
    dirs.emplace(block_dir(key));
  }
  sync_dirs(dirs, store, report);
  return report;
}

}  // namespace kvkeep
