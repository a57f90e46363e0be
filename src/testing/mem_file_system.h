// MemFileSystem is a file system in memory that keeps account like a real one.
//
// It charges files in allocation units, can be full, gives each directory a size, and keeps an
// unlinked file (and its charge) until it is closed. Beside the FileSystem calls it has verbs with
// which a test plays the hand from outside: they are neither observed nor refused. A verb that
// names a missing file ends the test program.
//
// Differences to the machine's file system: directories cannot be renamed.
//
// Threads: any thread, open files too.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/file_system.h"
#include "kvkeep/environment.h"
#include "testing/operation.h"

namespace kvkeep::testing {

class MemTree;

class MemFileSystem : public FileSystem {
 public:
  struct Options {
    uint64_t block_bytes = 1;      // Allocation unit.
    uint64_t capacity = 0;         // Bytes; beyond it calls fail with ENOSPC. 0: endless.
    uint64_t directory_bytes = 0;  // Charge of each directory, the root included.
    std::shared_ptr<Clock> clock;  // For file times. Null: the system's.
  };
  MemFileSystem();
  explicit MemFileSystem(Options options);
  ~MemFileSystem() override;

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

  // Nothing if there is no such file.
  std::optional<std::string> read_all(std::string_view path) const;
  // Puts a new file there, parents included, in place of one that exists.
  void write_all(std::string_view path, std::string_view bytes);
  // Puts a symbolic link there, parents included.
  void make_link(std::string_view path);
  void flip_bit(std::string_view path, uint64_t bit);
  void truncate(std::string_view path, uint64_t size);
  // Removes a file, or a directory with all that is in it.
  void remove_tree(std::string_view path);
  void set_capacity(uint64_t bytes);

  // Files and links, sorted.
  std::vector<std::string> paths() const;
  // Everything: directories and unlinked open files included.
  uint64_t allocated_bytes() const;
  // What is there now, deeply: names and contents, but no locks, observer or open files.
  std::shared_ptr<MemFileSystem> clone() const;
  // Called after each successful call that changes the disk, on the thread that made it, without
  // locks. An append that is cut short by a full disk is reported too.
  void on_operation(std::function<void(const Operation&)> observer);

 private:
  const std::shared_ptr<MemTree> tree_;
};

}  // namespace kvkeep::testing
