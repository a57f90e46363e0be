// The inside of MemFileSystem: names, nodes and the account of what they are charged.
//
// Shared by the file system and its open files, which may outlive it. Paths are well-formed.
// Functions that return int return an errno, or 0.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "testing/mem_file_system.h"

namespace kvkeep::testing {

struct MemNode {
  FileKind kind = FileKind::kFile;
  std::string bytes;
  double mtime = 0;
  uint64_t inode = 0;
  int opens = 0;
  bool linked = true;
  bool locked = false;
};
using MemNodePtr = std::shared_ptr<MemNode>;

class MemTree {
 public:
  explicit MemTree(MemFileSystem::Options given);

  mutable Mutex mu;
  MemFileSystem::Options options KVKEEP_GUARDED_BY(mu);
  std::map<std::string, MemNodePtr, std::less<>> nodes KVKEEP_GUARDED_BY(mu);  // The root is "".
  std::function<void(const Operation&)> observer KVKEEP_GUARDED_BY(mu);

  // Null if there is none.
  MemNodePtr get(std::string_view path) const KVKEEP_REQUIRES(mu);
  int find(std::string_view path, MemNodePtr& node) const KVKEEP_REQUIRES(mu);
  int find_directory(std::string_view path, MemNodePtr& node) const KVKEEP_REQUIRES(mu);
  int find_file(std::string_view path, MemNodePtr& node) const KVKEEP_REQUIRES(mu);

  int create(std::string_view path, FileKind kind) KVKEEP_REQUIRES(mu);
  int rename(std::string_view from, std::string_view to) KVKEEP_REQUIRES(mu);
  int unlink(std::string_view path) KVKEEP_REQUIRES(mu);
  // REQUIRES: there is such a name. The node lives on while it is open.
  void drop(std::string_view path) KVKEEP_REQUIRES(mu);
  // Whatever the capacity. REQUIRES: there is no such name.
  MemNodePtr add(std::string_view path, FileKind kind) KVKEEP_REQUIRES(mu);
  void add_missing_parents(std::string_view path) KVKEEP_REQUIRES(mu);
  void resize(MemNode& node, uint64_t size) KVKEEP_REQUIRES(mu);
  // How many of `bytes` more the file can take.
  uint64_t room_for(const MemNode& node, uint64_t bytes) const KVKEEP_REQUIRES(mu);
  FileStat stat_of(const MemNode& node) const KVKEEP_REQUIRES(mu);
  uint64_t charged() const KVKEEP_REQUIRES(mu) { return charged_; }

  // The end of an open file.
  void close(const MemNodePtr& node) KVKEEP_EXCLUDES(mu);
  // The end of a call that changes the disk: reports it, or makes a Status of the error.
  Status finish(int error, const Operation& operation) KVKEEP_EXCLUDES(mu);
  void report(const Operation& operation) KVKEEP_EXCLUDES(mu);

 private:
  uint64_t charge_of(const MemNode& node, uint64_t size) const KVKEEP_REQUIRES(mu);
  uint64_t charge_of(const MemNode& node) const KVKEEP_REQUIRES(mu);
  uint64_t free_bytes() const KVKEEP_REQUIRES(mu);
  int check_parents(std::string_view path) const KVKEEP_REQUIRES(mu);
  void touch_parent(std::string_view path) KVKEEP_REQUIRES(mu);

  uint64_t charged_ KVKEEP_GUARDED_BY(mu) = 0;
  uint64_t next_inode_ KVKEEP_GUARDED_BY(mu) = 1;
};

}  // namespace kvkeep::testing
