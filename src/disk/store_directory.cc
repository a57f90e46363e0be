#include "disk/store_directory.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "disk/header_reader.h"
#include "disk/owner_lock.h"
#include "disk/store_layout.h"
#include "disk/store_setup.h"

namespace kvkeep {
namespace {

// A root that will not work later either: no permission, read-only, or not a directory.
bool is_lasting(int error) {
  return error == EACCES || error == EPERM || error == EROFS || error == ENOTDIR ||
         error == EEXIST || error == ELOOP;
}

Status explain_open(const Status& status, const std::string& root_name) {
  if (status.sys_errno() == 0) return status;
  const Code code = is_lasting(status.sys_errno()) ? Code::kFailedPrecondition : Code::kUnavailable;
  return Status::from_errno(code, root_name + " cannot be used as a store: " + status.message(),
                            status.sys_errno());
}

Status unavailable(const Status& status) {
  if (status.code() != Code::kNotFound) return status;
  return Status::from_errno(Code::kUnavailable, status.message(), status.sys_errno());
}

}  // namespace

struct StoreDirectory::Parts {
  std::unique_ptr<OwnerLock> owner;
  std::unique_ptr<TempWriter> temps;
  std::unique_ptr<Quarantine> quarantine;
  uint64_t quarantine_found_bytes = 0;
};

StoreDirectory::StoreDirectory(std::shared_ptr<FileSystem> file_system, Settings settings)
    : file_system_(std::move(file_system)),
      settings_(std::move(settings)),
      parts_(std::make_unique<Parts>()) {}

StoreDirectory::~StoreDirectory() = default;

void StoreDirectory::release_owner() { parts_->owner.reset(); }

Result<std::unique_ptr<StoreDirectory>> StoreDirectory::open(
    std::shared_ptr<FileSystem> file_system, Settings settings) {
  std::unique_ptr<StoreDirectory> store(
      new StoreDirectory(std::move(file_system), std::move(settings)));
  if (const Status taken = store->take(); !taken.ok()) {
    return explain_open(taken, store->settings_.root_name);
  }
  return store;
}

Status StoreDirectory::take() {
  FileSystem& files = *file_system_;
  KVKEEP_TRY(create_layout(files));
  KVKEEP_TRY_ASSIGN(parts_->owner,
                    OwnerLock::take(files, {settings_.nonce, settings_.root_name, settings_.now}));
  KVKEEP_TRY_ASSIGN(const SpaceInfo space, files.space());
  block_bytes_ = std::max<uint64_t>(space.block_bytes, 1);
  parts_->temps = std::make_unique<TempWriter>(
      files, TempWriter::Settings{settings_.nonce, settings_.durability, block_bytes_});
  KVKEEP_TRY_ASSIGN(parts_->quarantine, Quarantine::open(files, settings_.quarantine_max_bytes));
  parts_->quarantine_found_bytes = parts_->quarantine->bytes();
  if (settings_.durability == Durability::kDataAndDir) KVKEEP_TRY(files.sync_dir(""));
  return {};
}

Result<ScanReport> StoreDirectory::scan(double now, const std::function<void(FoundBlock)>& found,
                                        Helpers helpers) {
  const ScanSettings scan{settings_.nonce, now, helpers.executor, helpers.count};
  KVKEEP_TRY_ASSIGN(ScanReport report, scan_store(*file_system_, scan, found));
  report.quarantine_bytes = parts_->quarantine_found_bytes;
  return report;
}

Result<ScanReport> StoreDirectory::relist(
    double now, const std::function<bool(const BlockHash&, const FileStat&)>& wants,
    const std::function<void(FoundBlock)>& found) {
  KVKEEP_TRY(still_there());
  const ScanSettings scan{settings_.nonce, now, nullptr, 0, wants};
  KVKEEP_TRY_ASSIGN(const ScanReport report, scan_store(*file_system_, scan, found));
  KVKEEP_TRY(still_there());  // Missing directories look like empty ones.
  return report;
}

Status StoreDirectory::still_there() {
  for (const std::string_view dir : {std::string_view(), kServiceDir}) {
    const Result<FileStat> stat = file_system_->stat(dir);
    if (stat.ok() && stat->kind == FileKind::kDirectory) continue;
    if (!stat.ok() && stat.status().code() != Code::kNotFound) return stat.status();
    return Status::from_errno(
        Code::kUnavailable,
        settings_.root_name + " is gone, or its " + std::string(kServiceDir) + " is", ENOENT);
  }
  return {};
}

Status StoreDirectory::restore_subdir(std::string_view subdir) {
  KVKEEP_TRY(unavailable(file_system_->create_dirs(subdir)));
  if (settings_.durability != Durability::kDataAndDir) return {};
  return unavailable(file_system_->sync_dir(""));
}

Result<TempFile> StoreDirectory::write_temp(const BlockHash& hash, const Image& image) {
  KVKEEP_TRY(still_there());
  Result<TempFile> temp = parts_->temps->write(hash, image);
  if (temp.ok() || temp.status().code() != Code::kNotFound) return temp;
  KVKEEP_TRY(restore_subdir(block_dir(hash)));
  temp = parts_->temps->write(hash, image);
  if (!temp.ok()) return unavailable(temp.status());
  return temp;
}

Status StoreDirectory::publish(const TempFile& temp, const std::string& path) {
  const Result<FileStat> old = file_system_->stat(path);
  if (!old.ok() && old.status().code() != Code::kNotFound) return old.status();
  if (old.ok() && old->kind != FileKind::kFile) {
    return Status(Code::kFailedPrecondition, path + " is not a regular file: it is left alone");
  }
  return unavailable(file_system_->rename(temp.path, path));
}

Result<StoreDirectory::Committed> StoreDirectory::commit(const TempFile& temp,
                                                         const BlockHash& hash) {
  if (const Status published = publish(temp, block_path(hash)); !published.ok()) {
    discard(temp);
    return published;
  }
  if (settings_.durability != Durability::kDataAndDir) return Committed{};
  return Committed{file_system_->sync_dir(block_dir(hash))};
}

void StoreDirectory::discard(const TempFile& temp) { parts_->temps->discard(temp); }

uint64_t StoreDirectory::leftover_bytes() const { return parts_->temps->leftover_bytes(); }

Result<bool> StoreDirectory::remove(const BlockHash& hash) {
  const Result<FileStat> old = stat(hash);
  const Status status = old.ok() ? file_system_->unlink(block_path(hash)) : old.status();
  if (status.code() == Code::kNotFound) {
    // Where the whole store is gone, the file may come back with it.
    KVKEEP_TRY(still_there());
    return false;
  }
  KVKEEP_TRY(status);
  return true;
}

Result<QuarantineReport> StoreDirectory::quarantine(const BlockHash& hash, uint64_t allocated) {
  KVKEEP_TRY(still_there());
  KVKEEP_TRY(stat(hash).status());
  return parts_->quarantine->take(hash, allocated);
}

Status StoreDirectory::set_mtime(const BlockHash& hash, double mtime) {
  return file_system_->set_mtime(block_path(hash), mtime);
}

Result<BlockHeader> StoreDirectory::read_header(const BlockHash& hash) {
  HeaderReader reader(*file_system_);
  KVKEEP_TRY_ASSIGN(BlockHeader header, reader.read(block_path(hash)));
  if (header.hash == hash) return header;
  return Status(
      Code::kDataLoss, MissReason::kDamaged,
      "the file of block " + hash.short_hex() + " holds block " + header.hash.short_hex());
}

Result<FileStat> StoreDirectory::stat(const BlockHash& hash) {
  KVKEEP_TRY_ASSIGN(const FileStat stat, file_system_->stat(block_path(hash)));
  if (stat.kind == FileKind::kFile) return stat;
  return Status(Code::kNotFound, MissReason::kAbsent,
                block_path(hash) + " is not a regular file: it is left alone");
}

}  // namespace kvkeep
