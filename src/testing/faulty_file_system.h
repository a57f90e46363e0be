// FaultyFileSystem passes every call on to another file system, unless the plan says otherwise, and
// keeps a record of all of them.
//
//   auto disk = std::make_shared<MemFileSystem>();
//   auto faulty = std::make_shared<FaultyFileSystem>(disk);
//   faulty->plan().fail(Op::kAppend, ".tmp", ENOSPC);
//   …
//   EXPECT_EQ(faulty->count(Op::kUnlink, ".tmp"), 1);
//
// Ownership: open files keep what they need; the file system may go first.
// Threads:   any thread, and open files too as far as the inner file system's allow it.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "io/file_system.h"
#include "testing/fault_plan.h"
#include "testing/operation.h"

namespace kvkeep::testing {

class FaultyCalls;

class FaultyFileSystem : public FileSystem {
 public:
  // A plan may be shared by several file systems (and read engines).
  explicit FaultyFileSystem(std::shared_ptr<FileSystem> inner,
                            std::shared_ptr<FaultPlan> plan = std::make_shared<FaultPlan>());
  ~FaultyFileSystem() override;

  FaultPlan& plan();

  // Every call, failed ones too, in the order in which they began.
  std::vector<Operation> calls() const;
  // How many calls of that operation had `path_part` in their path.
  size_t count(Op op, std::string_view path_part = "") const;
  // The calls that changed the disk, with their data, in the order in which they did.
  // replay_changes() takes them.
  std::vector<Operation> changes() const;
  void clear_record();

  Status create_dirs(std::string_view path) override;
  Status list_dir(std::string_view path,
                  const std::function<void(const DirEntry&)>& visit) override;
  Result<FileStat> stat(std::string_view path) override;
  Result<std::unique_ptr<ReadFile>> open_read(std::string_view path) override;
  Result<std::unique_ptr<WriteFile>> create_exclusive(std::string_view path) override;
  Status rename(std::string_view from, std::string_view to) override;
  Status unlink(std::string_view path) override;
  Status set_mtime(std::string_view path, double mtime) override;
  Status sync_dir(std::string_view path) override;
  Result<SpaceInfo> space() override;
  Result<std::unique_ptr<FileLock>> try_lock(std::string_view path) override;

 private:
  const std::shared_ptr<FileSystem> inner_;
  const std::shared_ptr<FaultyCalls> calls_;
};

}  // namespace kvkeep::testing
