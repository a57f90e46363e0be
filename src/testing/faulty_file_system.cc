#include "testing/faulty_file_system.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "testing/faulty_calls.h"

namespace kvkeep::testing {
namespace {

Operation operation_on(Op op, std::string_view path) {
  Operation operation;
  operation.op = op;
  operation.path = path;
  return operation;
}

class FaultyReader : public ReadFile {
 public:
  FaultyReader(std::unique_ptr<ReadFile> inner, std::shared_ptr<FaultyCalls> calls,
               std::string path)
      : inner_(std::move(inner)), calls_(std::move(calls)), path_(std::move(path)) {}

  Result<FileStat> stat() override {
    KVKEEP_TRY(calls_->check(operation_on(Op::kStatOpen, path_)));
    return inner_->stat();
  }

  Result<size_t> pread(uint64_t offset, std::span<std::byte> into) override {
    Operation operation = operation_on(Op::kRead, path_);
    operation.bytes = into.size();
    const FaultPlan::Verdict verdict = calls_->begin(operation);
    if (verdict.error != 0) return planned_failure(operation, verdict.error);
    if (verdict.bytes.has_value()) into = into.first(*verdict.bytes);
    KVKEEP_TRY_ASSIGN(const size_t n, inner_->pread(offset, into));
    return calls_->plan().after_read(path_, offset, into.first(n));
  }

 private:
  const std::unique_ptr<ReadFile> inner_;
  const std::shared_ptr<FaultyCalls> calls_;
  const std::string path_;
};

class FaultyWriter : public WriteFile {
 public:
  // `created` is the call that created the file.
  FaultyWriter(std::unique_ptr<WriteFile> inner, std::shared_ptr<FaultyCalls> calls,
               Operation created)
      : inner_(std::move(inner)), calls_(std::move(calls)), created_(std::move(created)) {}

  Status append(BytesView bytes) override {
    const Operation operation = call(Op::kAppend, bytes.size());
    const FaultPlan::Verdict verdict = calls_->begin(operation);
    if (verdict.error == 0) return write(bytes);
    if (verdict.bytes.has_value()) KVKEEP_TRY(write(bytes.first(*verdict.bytes)));
    return planned_failure(operation, verdict.error);
  }
  Status truncate(uint64_t size) override {
    return calls_->change(call(Op::kTruncate, size), [&] { return inner_->truncate(size); });
  }
  Status sync_data() override {
    return calls_->change(call(Op::kSyncData, 0), [&] { return inner_->sync_data(); });
  }
  Result<FileStat> stat() override {
    KVKEEP_TRY(calls_->check(call(Op::kStatOpen, 0)));
    return inner_->stat();
  }

 private:
  Operation call(Op op, uint64_t bytes) const {
    Operation operation = operation_on(op, created_.path);
    operation.file = created_.file;
    operation.bytes = bytes;
    return operation;
  }

  Status write(BytesView bytes) {
    Operation operation = call(Op::kAppend, bytes.size());
    operation.data = as_text(bytes);
    return calls_->apply(operation, [&] { return inner_->append(bytes); });
  }

  const std::unique_ptr<WriteFile> inner_;
  const std::shared_ptr<FaultyCalls> calls_;
  const Operation created_;
};

}  // namespace

FaultyFileSystem::FaultyFileSystem(std::shared_ptr<FileSystem> inner,
                                   std::shared_ptr<FaultPlan> plan)
    : inner_(std::move(inner)), calls_(std::make_shared<FaultyCalls>(std::move(plan))) {}
FaultyFileSystem::~FaultyFileSystem() = default;

FaultPlan& FaultyFileSystem::plan() { return calls_->plan(); }
std::vector<Operation> FaultyFileSystem::calls() const { return calls_->calls(); }
std::vector<Operation> FaultyFileSystem::changes() const { return calls_->changes(); }
void FaultyFileSystem::clear_record() { calls_->clear(); }

size_t FaultyFileSystem::count(Op op, std::string_view path_part) const {
  size_t n = 0;
  for (const Operation& call : calls()) {
    if (call.op != op) continue;
    n += call.path.find(path_part) != std::string::npos ||
                 call.to.find(path_part) != std::string::npos
             ? 1
             : 0;
  }
  return n;
}

Status FaultyFileSystem::create_dirs(std::string_view path) {
  return calls_->change(operation_on(Op::kCreateDirs, path),
                        [&] { return inner_->create_dirs(path); });
}

Status FaultyFileSystem::list_dir(std::string_view path,
                                  const std::function<void(const DirEntry&)>& visit) {
  KVKEEP_TRY(calls_->check(operation_on(Op::kListDir, path)));
  return inner_->list_dir(path, visit);
}

Result<FileStat> FaultyFileSystem::stat(std::string_view path) {
  KVKEEP_TRY(calls_->check(operation_on(Op::kStat, path)));
  return inner_->stat(path);
}

Result<std::unique_ptr<ReadFile>> FaultyFileSystem::open_read(std::string_view path) {
  KVKEEP_TRY(calls_->check(operation_on(Op::kOpenRead, path)));
  KVKEEP_TRY_ASSIGN(std::unique_ptr<ReadFile> file, inner_->open_read(path));
  return std::unique_ptr<ReadFile>(
      std::make_unique<FaultyReader>(std::move(file), calls_, std::string(path)));
}

Result<std::unique_ptr<WriteFile>> FaultyFileSystem::create_exclusive(std::string_view path) {
  Operation operation = operation_on(Op::kCreate, path);
  operation.file = calls_->next_file();
  std::unique_ptr<WriteFile> file;
  KVKEEP_TRY(calls_->change(operation, [&]() -> Status {
    KVKEEP_TRY_ASSIGN(file, inner_->create_exclusive(path));
    return {};
  }));
  return std::unique_ptr<WriteFile>(
      std::make_unique<FaultyWriter>(std::move(file), calls_, std::move(operation)));
}

Status FaultyFileSystem::rename(std::string_view from, std::string_view to) {
  Operation operation = operation_on(Op::kRename, from);
  operation.to = to;
  return calls_->change(operation, [&] { return inner_->rename(from, to); });
}

Status FaultyFileSystem::unlink(std::string_view path) {
  return calls_->change(operation_on(Op::kUnlink, path), [&] { return inner_->unlink(path); });
}

Status FaultyFileSystem::set_mtime(std::string_view path, double mtime) {
  Operation operation = operation_on(Op::kSetMtime, path);
  operation.mtime = mtime;
  return calls_->change(operation, [&] { return inner_->set_mtime(path, mtime); });
}

Status FaultyFileSystem::sync_dir(std::string_view path) {
  return calls_->change(operation_on(Op::kSyncDir, path), [&] { return inner_->sync_dir(path); });
}

Result<SpaceInfo> FaultyFileSystem::space() {
  KVKEEP_TRY(calls_->check(operation_on(Op::kSpace, "")));
  KVKEEP_TRY_ASSIGN(SpaceInfo space, inner_->space());
  if (const auto free = calls_->plan().free_space(); free.has_value()) {
    space.free = *free;
    space.capacity = std::max(space.capacity, space.free);
  }
  if (const auto inodes = calls_->plan().free_inodes(); inodes.has_value()) {
    space.free_inodes = *inodes;
    space.inodes = std::max(space.inodes, *inodes + 1);
  }
  return space;
}

Result<std::unique_ptr<FileLock>> FaultyFileSystem::try_lock(std::string_view path) {
  KVKEEP_TRY(calls_->check(operation_on(Op::kTryLock, path)));
  return inner_->try_lock(path);
}

}  // namespace kvkeep::testing
