#include "directory/verification.h"

#include <unistd.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "base/bytes.h"
#include "base/mutex.h"
#include "codec/block_codec.h"
#include "disk/store_layout.h"
#include "kvkeep/environment.h"

namespace kvkeep {
namespace {

constexpr uint64_t kRegionBytes = 2ull << 20;
constexpr uint64_t kKeepBytes = 256ull << 20;
constexpr uint64_t kPoolBytes = 1ull << 40;  // The system's own limit comes first.
constexpr unsigned kJobsMax = 64;
constexpr unsigned kDefaultJobsMax = 8;

struct FileToVerify {
  BlockHash hash;
  uint64_t file_bytes = 0;
};

// Names and sizes only, so that a progress bar knows where it ends.
Result<std::vector<FileToVerify>> files_of(FileSystem& file_system) {
  std::vector<FileToVerify> files;
  for (const char& name : kSubdirs) {
    const std::string subdir(1, name);
    const Status listed = file_system.list_dir(subdir, [&](const DirEntry& entry) {
      const StoreName found = classify(subdir, entry.name);
      if (found.kind != NameKind::kBlock) return;
      const Result<FileStat> stat = file_system.stat(block_path(*found.hash));
      if (stat.ok() && stat->kind == FileKind::kFile) files.push_back({*found.hash, stat->size});
    });
    if (!listed.ok() && listed.code() != Code::kNotFound) return listed;
  }
  return files;
}

// What the tasks share with the caller. Held by all of them, so that a task that is stuck in the
// system can end later.
class VerifyQueue {
 public:
  explicit VerifyQueue(std::vector<FileToVerify> files) : files_(std::move(files)) {}

  const std::vector<FileToVerify>& files() const { return files_; }

  // None: there is nothing left to do.
  std::optional<size_t> next() {
    MutexLock lock(mu_);
    return next_ < files_.size() ? std::optional(next_++) : std::nullopt;
  }
  // No block: the file is gone.
  void done(size_t index, std::optional<VerifiedBlock> block) {
    MutexLock lock(mu_);
    done_.emplace_back(index, std::move(block));
    changed_.notify_all();
  }
  std::pair<size_t, std::optional<VerifiedBlock>> take() {
    MutexLock lock(mu_);
    while (done_.empty()) changed_.wait(mu_);
    auto first = std::move(done_.front());
    done_.pop_front();
    return first;
  }

 private:
  const std::vector<FileToVerify> files_;
  Mutex mu_;
  CondVar changed_;
  size_t next_ KVKEEP_GUARDED_BY(mu_) = 0;
  std::deque<std::pair<size_t, std::optional<VerifiedBlock>>> done_ KVKEEP_GUARDED_BY(mu_);
};

void verify_files(FileSystem& file_system, const std::shared_ptr<BufferPool>& pool,
                  const std::filesystem::path& root, VerifyQueue& queue) {
  BlockVerifier verifier(file_system, pool);
  while (const std::optional<size_t> index = queue.next()) {
    const BlockHash& hash = queue.files()[*index].hash;
    VerifiedBlock block{hash, root / block_path(hash)};
    const Result<BlockHeader> header = verifier.verify(hash, block.file_size);
    block.verdict = header.status();
    block.has_digest = header.ok() && header->has_digest;
    const bool gone = block.verdict.code() == Code::kNotFound && !block.verdict.miss_reason();
    queue.done(*index, gone ? std::nullopt : std::optional(std::move(block)));
  }
}

void count(VerifyTotals& totals, const VerifiedBlock& block) {
  ++totals.blocks;
  totals.bytes += block.file_size;
  if (block.verdict.ok()) {
    totals.without_digest += block.has_digest ? 0 : 1;
  } else if (block.verdict.code() == Code::kDataLoss) {
    ++totals.damaged;
  } else if (block.verdict.miss_reason() == MissReason::kVersion) {
    ++totals.not_understood;
  } else {
    ++totals.not_read;
  }
}

unsigned jobs_for(const VerifyOptions& options, size_t files) {
  const auto processors = static_cast<unsigned>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  const unsigned wanted = options.jobs > 0 ? options.jobs : std::min(processors, kDefaultJobsMax);
  return static_cast<unsigned>(std::clamp<size_t>(files, 1, std::min(wanted, kJobsMax)));
}

}  // namespace

std::shared_ptr<BufferPool> make_file_pool() {
  BufferPool::Options options;
  options.limit_bytes = kPoolBytes;
  options.region_bytes = kRegionBytes;
  options.keep_bytes = kKeepBytes;
  return BufferPool::create(options);
}

Result<WholeFile> read_whole_file(FileSystem& file_system, std::string_view path,
                                  BufferPool& pool) {
  KVKEEP_TRY_ASSIGN(const std::unique_ptr<ReadFile> file, file_system.open_read(path));
  WholeFile whole;
  KVKEEP_TRY_ASSIGN(whole.stat, file->stat());
  if (whole.stat.size > kPoolBytes) {
    return Status(Code::kResourceExhausted, MissReason::kNoMemory, "the file is too large to read");
  }
  const uint64_t padded = round_up(std::max<uint64_t>(whole.stat.size, 1), kIoAlign);
  KVKEEP_TRY_ASSIGN(whole.buffer, pool.allocate(padded));
  KVKEEP_TRY_ASSIGN(const size_t n, file->pread(0, whole.buffer.span().first(std::min<uint64_t>(
                                                       padded, whole.buffer.capacity()))));
  if (n >= whole.stat.size) return whole;
  return Status(Code::kDataLoss, MissReason::kDamaged, "the file ended while it was read");
}

Result<BlockHeader> BlockVerifier::verify_once(const BlockHash& hash, uint64_t& file_size) {
  KVKEEP_TRY_ASSIGN(WholeFile whole, read_whole_file(file_system_, block_path(hash), *pool_));
  file_size = whole.stat.size;
  KVKEEP_TRY_ASSIGN(const ImagePtr image,
                    decode_image(std::move(whole.buffer), whole.stat.size, {hash, false}));
  return image->header();
}

// A passing fault of memory or cable must not condemn a file, so damage has to show twice (RUL-50).
Result<BlockHeader> BlockVerifier::verify(const BlockHash& hash, uint64_t& file_size) {
  Result<BlockHeader> first = verify_once(hash, file_size);
  return first.status().code() == Code::kDataLoss ? verify_once(hash, file_size) : first;
}

Result<VerifyTotals> verify_blocks(const std::shared_ptr<FileSystem>& file_system,
                                   const std::filesystem::path& root,
                                   const VerifyOptions& options) {
  KVKEEP_TRY_ASSIGN(std::vector<FileToVerify> files, files_of(*file_system));
  VerifyProgress progress;
  progress.blocks_total = files.size();
  for (const FileToVerify& file : files) progress.bytes_total += file.file_bytes;
  const unsigned jobs = jobs_for(options, files.size());
  const auto queue = std::make_shared<VerifyQueue>(std::move(files));
  const auto pool = make_file_pool();
  const auto executor = make_thread_executor(jobs);
  for (unsigned i = 0; i < jobs; ++i) {
    executor->post([=] { verify_files(*file_system, pool, root, *queue); });
  }
  VerifyTotals totals;
  while (progress.blocks < progress.blocks_total) {
    const auto [index, block] = queue->take();
    if (block) {
      count(totals, *block);
      if (options.visit) options.visit(*block);
    }
    ++progress.blocks;
    progress.bytes += queue->files()[index].file_bytes;
    if (options.progress) options.progress(progress);
  }
  return totals;
}

}  // namespace kvkeep
