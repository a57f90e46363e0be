#include "testing/crash_replay.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "base/bytes.h"
#include "kvkeep/status.h"

namespace kvkeep::testing {
namespace {

class Replay {
 public:
  explicit Replay(MemFileSystem& disk) : disk_(disk) {}

  void run(const Operation& change) {
    const Status status = apply(change);
    if (status.ok()) return;
    std::fprintf(stderr, "replay_changes: %s\n", status.to_string().c_str());
    std::abort();
  }

  void damage_unsynced(Unsynced unsynced) {
    for (const auto& [path, number] : names_) {
      const File& file = files_.at(number);
      if (!file.unsynced || unsynced == Unsynced::kKept) continue;
      const size_t size = disk_.read_all(path)->size();
      if (unsynced == Unsynced::kTorn) {
        disk_.truncate(path, size / 2);
      } else {
        disk_.truncate(path, 0);
        disk_.truncate(path, size);
      }
    }
  }

 private:
  struct File {
    std::unique_ptr<WriteFile> open;
    bool unsynced = false;
  };

  Status apply(const Operation& change) {
    switch (change.op) {
      case Op::kCreateDirs:
        return disk_.create_dirs(change.path);
      case Op::kCreate:
        return create(change);
      case Op::kRename:
        return rename(change);
      case Op::kUnlink:
        return unlink(change);
      case Op::kSetMtime:
        return disk_.set_mtime(change.path, change.mtime);
      case Op::kAppend:
        return written(change).append(as_byte_span(change.data));
      case Op::kTruncate:
        return written(change).truncate(change.bytes);
      case Op::kSyncData:
        return sync(change);
      default:
        return {};
    }
  }

  Status create(const Operation& change) {
    KVKEEP_TRY_ASSIGN(files_[change.file].open, disk_.create_exclusive(change.path));
    names_[change.path] = change.file;
    return {};
  }
  Status rename(const Operation& change) {
    KVKEEP_TRY(disk_.rename(change.path, change.to));
    names_.erase(change.to);
    if (const auto moved = names_.find(change.path); moved != names_.end()) {
      names_[change.to] = moved->second;
      names_.erase(moved);
    }
    return {};
  }
  Status unlink(const Operation& change) {
    names_.erase(change.path);
    return disk_.unlink(change.path);
  }
  Status sync(const Operation& change) {
    files_.at(change.file).unsynced = false;
    return {};
  }
  WriteFile& written(const Operation& change) {
    File& file = files_.at(change.file);
    file.unsynced = true;
    return *file.open;
  }

  MemFileSystem& disk_;
  std::map<uint64_t, File> files_;
  std::map<std::string, uint64_t> names_;  // Of the files created in the record.
};

}  // namespace

std::shared_ptr<MemFileSystem> replay_changes(std::span<const Operation> changes, Unsynced unsynced,
                                              std::shared_ptr<MemFileSystem> onto) {
  if (onto == nullptr) onto = std::make_shared<MemFileSystem>();
  Replay replay(*onto);
  for (const Operation& change : changes) replay.run(change);
  replay.damage_unsynced(unsynced);
  return onto;
}

}  // namespace kvkeep::testing
