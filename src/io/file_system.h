// Everything that kvkeep asks of a file system, and the only place it asks.
//
// A FileSystem is rooted at one store: paths are relative to the root, '/'-separated, at most a few
// components, "" being the root itself. No component below the root is ever followed through a
// symbolic link: such a path answers kUnavailable with ELOOP (stat, rename, unlink and set_mtime
// take a link itself). Directories are created 0700, files 0600.
//
// The calls are split where a crash can fall between them, so that a test double can crash there.
//
// Threads: any thread for different paths; one open file has one user at a time.
// Errors:  kNotFound (ENOENT), else kUnavailable with the errno; kInvalidArgument for a path of any
//          other form. Messages name the operation and the path.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kvkeep/block_hash.h"
#include "kvkeep/status.h"

namespace kvkeep {

// Direct I/O wants addresses, offsets and lengths in multiples of this.
inline constexpr uint64_t kIoAlign = 4096;

enum class FileKind : uint8_t { kFile, kDirectory, kLink, kOther };

struct FileStat {
  uint64_t size = 0;       // Bytes.
  uint64_t allocated = 0;  // Bytes on the device, as the file system reports them.
  double mtime = 0;        // Seconds since the Unix epoch.
  FileKind kind = FileKind::kOther;
  uint64_t device = 0;
  uint64_t inode = 0;
};

struct DirEntry {
  std::string name;
  FileKind kind = FileKind::kOther;
};

struct SpaceInfo {
  uint64_t capacity = 0;  // Bytes.
  uint64_t free = 0;      // Bytes available to this user.
  // Allocation unit in bytes: a file of n bytes is charged round_up(n, block_bytes).
  uint64_t block_bytes = 1;
  uint64_t inodes = 0;  // 0: the file system does not count them.
  uint64_t free_inodes = 0;
};

class ReadFile {
 public:
  virtual ~ReadFile() = default;
  virtual Result<FileStat> stat() = 0;
  // Reads up to `into.size()` bytes at `offset`; fewer only at the end of the file. Where address,
  // offset and length are multiples of kIoAlign the read may bypass the page cache.
  virtual Result<size_t> pread(uint64_t offset, std::span<std::byte> into) = 0;
};

class WriteFile {
 public:
  virtual ~WriteFile() = default;  // Closes. An unfinished file stays until it is unlinked.
  // Appends all of `bytes`, or fails with the beginning of them written. An address or length that
  // is not a multiple of kIoAlign ends direct I/O for this file.
  virtual Status append(BytesView bytes) = 0;
  // Cuts the file to `size` bytes (padding written for direct I/O goes). EINVAL if it has fewer.
  virtual Status truncate(uint64_t size) = 0;
  virtual Status sync_data() = 0;
  virtual Result<FileStat> stat() = 0;
};

// An advisory lock on an open file. Released by the destructor and by the end of the process.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Creates the directory and its missing parents; an existing directory is fine.
  virtual Status create_dirs(std::string_view path) = 0;
  // Calls `visit` for each entry, "." and ".." left out, in no particular order.
  virtual Status list_dir(std::string_view path,
                          const std::function<void(const DirEntry&)>& visit) = 0;
  // Of the link itself if it is one.
  virtual Result<FileStat> stat(std::string_view path) = 0;
  virtual Result<std::unique_ptr<ReadFile>> open_read(std::string_view path) = 0;
  // The file must not exist (EEXIST).
  virtual Result<std::unique_ptr<WriteFile>> create_exclusive(std::string_view path) = 0;
  // Atomic; replaces `to`.
  virtual Status rename(std::string_view from, std::string_view to) = 0;
  virtual Status unlink(std::string_view path) = 0;
  virtual Status set_mtime(std::string_view path, double mtime) = 0;
  // What was created, renamed and removed in the directory before this call outlives power loss.
  virtual Status sync_dir(std::string_view path) = 0;
  virtual Result<SpaceInfo> space() = 0;
  // Locks the existing file exclusively. kFailedPrecondition at once if somebody else holds it,
  // also somebody in this process.
  virtual Result<std::unique_ptr<FileLock>> try_lock(std::string_view path) = 0;
};

}  // namespace kvkeep
