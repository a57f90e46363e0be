#include "disk/temp_writer.h"

#include <utility>

#include "disk/store_layout.h"

namespace kvkeep {

TempWriter::TempWriter(FileSystem& file_system, Settings settings)
    : file_system_(file_system), settings_(std::move(settings)) {}

Result<uint64_t> TempWriter::fill(WriteFile& file, const Image& image) const {
  // Padding makes direct I/O possible and is cut off again. Where the file system allocates in
  // smaller units it would occupy more than the block is charged for a moment, so there the exact
  // bytes go out.
  const bool padded = settings_.block_bytes % kIoAlign == 0;
  KVKEEP_TRY(file.append(padded ? image.padded() : image.bytes()));
  if (padded) KVKEEP_TRY(file.truncate(image.file_bytes()));
  if (settings_.durability != Durability::kNone) KVKEEP_TRY(file.sync_data());
  KVKEEP_TRY_ASSIGN(const FileStat stat, file.stat());
  return stat.allocated;
}

Result<TempFile> TempWriter::write(const BlockHash& hash, const Image& image) {
  retry_leftovers();
  TempFile temp;
  temp.path = temp_path(hash, settings_.nonce, sequence_.fetch_add(1, std::memory_order_relaxed));
  KVKEEP_TRY_ASSIGN(std::unique_ptr<WriteFile> file, file_system_.create_exclusive(temp.path));
  const Result<uint64_t> allocated = fill(*file, image);
  file.reset();
  if (!allocated.ok()) {
    discard(temp);
    const Status status = allocated.status();
    if (status.code() != Code::kNotFound) return status;
    return Status::from_errno(Code::kUnavailable, status.message(), status.sys_errno());
  }
  temp.allocated = *allocated;
  return temp;
}

void TempWriter::discard(const TempFile& temp) {
  const Status gone = file_system_.unlink(temp.path);
  if (gone.ok() || gone.code() == Code::kNotFound) return;
  const Result<FileStat> stat = file_system_.stat(temp.path);
  if (!stat.ok() && stat.status().code() == Code::kNotFound) return;
  const uint64_t allocated = stat.ok() ? stat->allocated : temp.allocated;
  MutexLock lock(mu_);
  leftovers_.push_back({temp.path, allocated});
}

void TempWriter::retry_leftovers() {
  std::vector<TempFile> tried;
  {
    MutexLock lock(mu_);
    tried.swap(leftovers_);
  }
  for (const TempFile& temp : tried) discard(temp);
}

uint64_t TempWriter::leftover_bytes() const {
  MutexLock lock(mu_);
  uint64_t total = 0;
  for (const TempFile& temp : leftovers_) total += temp.allocated;
  return total;
}

}  // namespace kvkeep
