#include "disk/scan_worker.h"

#include <string>
#include <utility>

namespace kvkeep {
namespace {

constexpr double kSeedTempSeconds = 3600;

}  // namespace

ScanWorker::ScanWorker(FileSystem& file_system, const ScanSettings& settings,
                       const std::function<void(FoundBlock)>& found)
    : file_system_(file_system), settings_(settings), found_(found), reader_(file_system) {}

// Calls `visit(name, path, stat)` for every entry; one that is gone meanwhile is left out. An entry
// that cannot be examined has an empty stat.
template <typename Visit>
Status ScanWorker::each_entry(std::string_view dir, const Visit& visit) {
  const Status listed = file_system_.list_dir(dir, [&](const DirEntry& entry) {
    const std::string path = dir.empty() ? entry.name : std::string(dir) + "/" + entry.name;
    const Result<FileStat> stat = file_system_.stat(path);
    if (stat.ok()) return visit(entry.name, path, *stat);
    if (stat.status().code() == Code::kNotFound) return;
    FileStat unknown;
    unknown.kind = entry.kind;
    visit(entry.name, path, unknown);
  });
  return listed.code() == Code::kNotFound ? Status() : listed;
}

void ScanWorker::count_dir(std::string_view path) {
  const Result<FileStat> stat = file_system_.stat(path);
  if (stat.ok()) report_.overhead_bytes += stat->allocated;
}

void ScanWorker::count_foreign(const FileStat& stat) {
  ++report_.foreign_files;
  report_.foreign_bytes += stat.allocated;
}

void ScanWorker::count_quarantined(const FileStat& stat) {
  ++report_.quarantine_files;
  report_.quarantine_bytes += stat.allocated;
}

Status ScanWorker::look_at_root() {
  count_dir("");
  return each_entry("", [this](std::string_view name, std::string_view, const FileStat& stat) {
    if (name == kCacheTag) {
      report_.overhead_bytes += stat.allocated;
    } else if (!is_subdir(name) && name != kServiceDir) {
      count_foreign(stat);
    }
  });
}

Status ScanWorker::look_at_service_dirs() {
  KVKEEP_TRY(look_at_service_dir(kServiceDir));
  return look_at_service_dir(kQuarantineDir);
}

Status ScanWorker::look_at_service_dir(std::string_view dir) {
  count_dir(dir);
  return each_entry(dir, [&](std::string_view name, std::string_view path, const FileStat& stat) {
    if (dir == kQuarantineDir && quarantine_number(name)) return count_quarantined(stat);
    if (path != kQuarantineDir) report_.overhead_bytes += stat.allocated;
  });
}

Status ScanWorker::look_at_subdir(std::string_view subdir) {
  count_dir(subdir);
  return each_entry(subdir,
                    [&](std::string_view name, std::string_view path, const FileStat& stat) {
                      look_at(classify(subdir, name), path, stat);
                    });
}

void ScanWorker::look_at(const StoreName& name, std::string_view path, const FileStat& stat) {
  if (stat.kind != FileKind::kFile || name.kind == NameKind::kForeign) return count_foreign(stat);
  if (name.kind == NameKind::kBlock) return report_block(*name.hash, path, stat);
  if (settings_.read_only) {
    ++report_.temp_files;
    report_.temp_bytes += stat.allocated;
    return;
  }
  if (name.kind == NameKind::kTemp) {
    // Our own are being written right now; their writer counts them.
    if (name.nonce != settings_.own_nonce) remove_temp(path, stat);
    return;
  }
  if (settings_.now - stat.mtime > kSeedTempSeconds) return remove_temp(path, stat);
  report_.overhead_bytes += stat.allocated;
}

void ScanWorker::remove_temp(std::string_view path, const FileStat& stat) {
  const Status gone = file_system_.unlink(path);
  if (gone.ok()) {
    ++report_.temp_files_removed;
  } else if (gone.code() != Code::kNotFound) {
    report_.overhead_bytes += stat.allocated;
  }
}

void ScanWorker::report_block(const BlockHash& hash, std::string_view path, const FileStat& stat) {
  FoundBlock block{hash, stat.size, stat.allocated, stat.mtime, std::nullopt, {}};
  if (settings_.wants_header && !settings_.wants_header(hash, stat)) {
    block.listed_only = true;
    return found_(std::move(block));
  }
  Result<BlockHeader> header = reader_.read(path);
  if (!header.ok()) {
    // Without a reason the file itself was missing; with one, something in it was.
    if (header.status().code() == Code::kNotFound && !header.status().miss_reason()) return;
    block.why = reason_unread(header.status());
  } else if (header->hash == hash) {
    block.header = *std::move(header);
  } else {
    block.why = MissReason::kDamaged;
  }
  if (!block.header) ++report_.unreadable_files;
  found_(std::move(block));
}

}  // namespace kvkeep
