#include "disk/quarantine.h"

#include <algorithm>

#include "disk/store_layout.h"

namespace kvkeep {

Quarantine::Quarantine(FileSystem& file_system, uint64_t max_bytes)
    : file_system_(file_system), max_bytes_(max_bytes) {}

Result<std::unique_ptr<Quarantine>> Quarantine::open(FileSystem& file_system, uint64_t max_bytes) {
  std::unique_ptr<Quarantine> quarantine(new Quarantine(file_system, max_bytes));
  KVKEEP_TRY(quarantine->load());
  quarantine->trim();
  return quarantine;
}

Status Quarantine::load() {
  const Status listed = file_system_.list_dir(kQuarantineDir, [this](const DirEntry& entry) {
    const std::optional<uint64_t> number = quarantine_number(entry.name);
    if (!number) return;
    const std::string path = std::string(kQuarantineDir) + "/" + entry.name;
    const Result<FileStat> stat = file_system_.stat(path);
    if (stat.ok() && stat->kind == FileKind::kFile) add(*number, path, stat->allocated);
  });
  return listed.code() == Code::kNotFound ? Status() : listed;
}

void Quarantine::add(uint64_t number, std::string path, uint64_t allocated) {
  MutexLock lock(mu_);
  last_number_ = std::max(last_number_, number);
  if (files_.emplace(std::make_pair(number, std::move(path)), allocated).second)
    bytes_ += allocated;
}

Result<QuarantineReport> Quarantine::take(const BlockHash& hash, uint64_t allocated) {
  QuarantineReport report;
  if (allocated <= max_bytes_) {
    const Status moved = move_in(hash, allocated);
    if (moved.code() == Code::kNotFound) return moved;
    if (moved.ok()) {
      // Trimming after the move keeps the store's total as it was; doing it first would lose older
      // files for a move that then fails.
      report.added_bytes = allocated;
      report.removed_bytes = trim();
      return report;
    }
  }
  KVKEEP_TRY(file_system_.unlink(block_path(hash)));
  return report;
}

Status Quarantine::move_in(const BlockHash& hash, uint64_t allocated) {
  uint64_t number = 0;
  {
    MutexLock lock(mu_);
    number = ++last_number_;
  }
  const std::string to = quarantine_path(hash, number);
  Status moved = file_system_.rename(block_path(hash), to);
  if (moved.code() == Code::kNotFound) {
    // The block or the directory is missing; creating a directory that exists changes nothing.
    KVKEEP_TRY(file_system_.create_dirs(kQuarantineDir));
    moved = file_system_.rename(block_path(hash), to);
  }
  KVKEEP_TRY(moved);
  add(number, to, allocated);
  return {};
}

Quarantine::Files Quarantine::take_surplus() {
  Files surplus;
  MutexLock lock(mu_);
  while (bytes_ > max_bytes_ && !files_.empty()) {
    bytes_ -= files_.begin()->second;
    surplus.insert(files_.extract(files_.begin()));
  }
  return surplus;
}

uint64_t Quarantine::trim() {
  uint64_t removed = 0;
  for (const auto& [key, allocated] : take_surplus()) {
    const auto& [number, path] = key;
    const Status gone = file_system_.unlink(path);
    if (gone.ok() || gone.code() == Code::kNotFound) {
      removed += allocated;
    } else {
      add(number, path, allocated);
    }
  }
  return removed;
}

uint64_t Quarantine::bytes() const {
  MutexLock lock(mu_);
  return bytes_;
}

}  // namespace kvkeep
