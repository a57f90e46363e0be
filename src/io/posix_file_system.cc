#include "io/posix_file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cmath>

#include "io/posix_files.h"
#include "io/posix_root.h"
#include "io/relative_path.h"
#include "io/system_calls.h"
#include "io/system_error.h"

namespace kvkeep {
namespace {

constexpr mode_t kDirMode = 0700;
constexpr mode_t kFileMode = 0600;

// Where a path ends: a name in an open directory.
struct Place {
  FileDescriptor owned;  // Not valid where the directory is the root.
  int dir = -1;
  std::string name;
};

bool is_link(int dir, const char* name) {
  struct stat s;
  return ::fstatat(dir, name, &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(s.st_mode);
}

// Not valid, with errno, if it is not a directory. ELOOP for a link, which the system calls
// ENOTDIR.
FileDescriptor open_dir_at(int dir, const char* name) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  FileDescriptor fd(uninterrupted([&] { return ::openat(dir, name, kFlags); }));
  if (!fd.valid() && errno == ENOTDIR) errno = is_link(dir, name) ? ELOOP : ENOTDIR;
  return fd;
}

FileKind kind_of(int dir, const dirent& entry) {
  switch (entry.d_type) {
    case DT_REG:
      return FileKind::kFile;
    case DT_DIR:
      return FileKind::kDirectory;
    case DT_LNK:
      return FileKind::kLink;
    case DT_UNKNOWN:
      break;
    default:
      return FileKind::kOther;
  }
  struct stat s;
  if (::fstatat(dir, entry.d_name, &s, AT_SYMLINK_NOFOLLOW) != 0) return FileKind::kOther;
  return to_file_stat(s).kind;
}

// 0, or the errno of the failed call.
int visit_entries(DIR* dir, const std::function<void(const DirEntry&)>& visit) {
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(dir);
    if (entry == nullptr) return errno;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    visit({std::string(name), kind_of(::dirfd(dir), *entry)});
  }
}

timespec to_timespec(double seconds) {
  const double whole = std::floor(seconds);
  timespec t = {};
  t.tv_sec = static_cast<time_t>(whole);
  t.tv_nsec = std::min(999'999'999L, std::lround((seconds - whole) * 1e9));
  return t;
}

class HeldLock : public FileLock {
 public:
  explicit HeldLock(FileDescriptor fd) : fd_(std::move(fd)) {}

 private:
  const FileDescriptor fd_;
};

class PosixFileSystem : public FileSystem {
 public:
  PosixFileSystem(FileDescriptor root, std::filesystem::path root_path)
      : root_(std::move(root)), root_path_(std::move(root_path)) {}

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
  // For messages.
  std::string full(std::string_view path) const {
    return path.empty() ? root_path_.string() : (root_path_ / path).string();
  }
  // The call that just failed, by errno.
  Status failed(std::string_view operation, std::string_view path) const {
    const int error = errno;
    return system_error(operation, full(path), error);
  }
  Result<FileDescriptor> open_dir(std::string_view operation, std::string_view path);
  Result<Place> find(std::string_view operation, std::string_view path);
  Result<FileDescriptor> open_file(std::string_view operation, std::string_view path, int flags);
  Result<FileStat> stat_root();

  const FileDescriptor root_;
  const std::filesystem::path root_path_;
};

// The named directory, opened anew.
Result<FileDescriptor> PosixFileSystem::open_dir(std::string_view operation,
                                                 std::string_view path) {
  KVKEEP_TRY_ASSIGN(const std::vector<std::string> names, split_path(path));
  FileDescriptor dir = open_dir_at(root_.get(), ".");
  for (const std::string& name : names) {
    if (!dir.valid()) break;
    dir = open_dir_at(dir.get(), name.c_str());
  }
  if (!dir.valid()) return failed(operation, path);
  return dir;
}

Result<Place> PosixFileSystem::find(std::string_view operation, std::string_view path) {
  KVKEEP_TRY_ASSIGN(std::vector<std::string> names, split_path(path));
  Place place;
  place.dir = root_.get();
  place.name = ".";
  if (names.empty()) return place;
  place.name = std::move(names.back());
  names.pop_back();
  for (const std::string& name : names) {
    place.owned = open_dir_at(place.dir, name.c_str());
    if (!place.owned.valid()) return failed(operation, path);
    place.dir = place.owned.get();
  }
  return place;
}

Status PosixFileSystem::create_dirs(std::string_view path) {
  KVKEEP_TRY_ASSIGN(const std::vector<std::string> names, split_path(path));
  FileDescriptor dir;
  int parent = root_.get();
  for (const std::string& name : names) {
    if (::mkdirat(parent, name.c_str(), kDirMode) != 0 && errno != EEXIST) {
      return failed("create directory", path);
    }
    dir = open_dir_at(parent, name.c_str());
    if (!dir.valid()) return failed("create directory", path);
    parent = dir.get();
  }
  return {};
}

Status PosixFileSystem::list_dir(std::string_view path,
                                 const std::function<void(const DirEntry&)>& visit) {
  KVKEEP_TRY_ASSIGN(FileDescriptor fd, open_dir("list", path));
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(fd.get()), &::closedir);
  if (dir == nullptr) return failed("list", path);
  fd.release();
  const int error = visit_entries(dir.get(), visit);
  return error == 0 ? Status() : system_error("list", full(path), error);
}

Result<FileStat> PosixFileSystem::stat(std::string_view path) {
  if (path.empty()) return stat_root();
  KVKEEP_TRY_ASSIGN(const Place place, find("stat", path));
  struct stat s;
  if (::fstatat(place.dir, place.name.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0) {
    return failed("stat", path);
  }
  return to_file_stat(s);
}

Result<FileStat> PosixFileSystem::stat_root() {
  struct stat held;
  if (::fstat(root_.get(), &held) != 0) return failed("stat", "");
  struct stat named;
  const bool there = ::stat(root_path_.c_str(), &named) == 0;
  if (!there && errno != ENOENT && errno != ENOTDIR) return failed("stat", "");
  if (!there || named.st_dev != held.st_dev || named.st_ino != held.st_ino) {
    return Status::from_errno(
        Code::kNotFound, "the directory '" + full("") + "' has been removed or replaced", ENOENT);
  }
  return to_file_stat(held);
}

// Only regular files, whatever the path names. O_NONBLOCK keeps a pipe from blocking the open.
Result<FileDescriptor> PosixFileSystem::open_file(std::string_view operation, std::string_view path,
                                                  int flags) {
  KVKEEP_TRY_ASSIGN(const Place place, find(operation, path));
  flags |= O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  FileDescriptor fd(uninterrupted([&] { return ::openat(place.dir, place.name.c_str(), flags); }));
  if (!fd.valid()) return failed(operation, path);
  struct stat s;
  if (::fstat(fd.get(), &s) != 0) return failed(operation, path);
  if (S_ISDIR(s.st_mode)) return system_error(operation, full(path), EISDIR);
  if (!S_ISREG(s.st_mode)) {
    return Status::from_errno(Code::kUnavailable, full(path) + " is not a regular file", EINVAL);
  }
  return fd;
}

Result<std::unique_ptr<ReadFile>> PosixFileSystem::open_read(std::string_view path) {
  KVKEEP_TRY_ASSIGN(FileDescriptor fd, open_file("open", path, O_RDONLY));
  return make_posix_read_file(std::move(fd), full(path));
}

Result<std::unique_ptr<WriteFile>> PosixFileSystem::create_exclusive(std::string_view path) {
  KVKEEP_TRY_ASSIGN(const Place place, find("create", path));
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  FileDescriptor fd(
      uninterrupted([&] { return ::openat(place.dir, place.name.c_str(), kFlags, kFileMode); }));
  if (!fd.valid()) return failed("create", path);
  return make_posix_write_file(std::move(fd), full(path));
}

Status PosixFileSystem::rename(std::string_view from, std::string_view to) {
  KVKEEP_TRY_ASSIGN(const Place source, find("rename", from));
  KVKEEP_TRY_ASSIGN(const Place target, find("rename", to));
  if (::renameat(source.dir, source.name.c_str(), target.dir, target.name.c_str()) == 0) return {};
  return failed("rename", from);
}

Status PosixFileSystem::unlink(std::string_view path) {
  KVKEEP_TRY_ASSIGN(const Place place, find("unlink", path));
  return ::unlinkat(place.dir, place.name.c_str(), 0) == 0 ? Status() : failed("unlink", path);
}

Status PosixFileSystem::set_mtime(std::string_view path, double mtime) {
  KVKEEP_TRY_ASSIGN(const Place place, find("set the time of", path));
  timespec times[2] = {};
  times[0].tv_nsec = UTIME_OMIT;
  times[1] = to_timespec(mtime);
  if (::utimensat(place.dir, place.name.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0) return {};
  return failed("set the time of", path);
}

Status PosixFileSystem::sync_dir(std::string_view path) {
  KVKEEP_TRY_ASSIGN(const FileDescriptor dir, open_dir("sync", path));
  return uninterrupted([&] { return ::fsync(dir.get()); }) == 0 ? Status() : failed("sync", path);
}

Result<SpaceInfo> PosixFileSystem::space() {
  struct statvfs s;
  if (uninterrupted([&] { return ::fstatvfs(root_.get(), &s); }) != 0) return failed("statvfs", "");
  // Counts are in f_frsize, and files are charged in it. f_bsize is only a preferred transfer size.
  const uint64_t unit = s.f_frsize != 0 ? s.f_frsize : s.f_bsize;
  SpaceInfo space;
  space.capacity = uint64_t{s.f_blocks} * unit;
  space.free = uint64_t{s.f_bavail} * unit;
  space.block_bytes = std::max<uint64_t>(unit, 1);
  space.inodes = s.f_files;
  space.free_inodes = s.f_favail;
  return space;
}

Result<std::unique_ptr<FileLock>> PosixFileSystem::try_lock(std::string_view path) {
  KVKEEP_TRY_ASSIGN(FileDescriptor fd, open_file("lock", path, O_RDWR));
  if (uninterrupted([&] { return lock_file(fd.get()); }) == 0) {
    return std::unique_ptr<FileLock>(std::make_unique<HeldLock>(std::move(fd)));
  }
  if (errno != EAGAIN) return failed("lock", path);
  return Status::from_errno(Code::kFailedPrecondition,
                            "'" + full(path) + "' is locked by somebody else", EAGAIN);
}

}  // namespace

Result<std::shared_ptr<FileSystem>> open_posix_file_system(const std::filesystem::path& root,
                                                           RootUse use) {
  if (root.empty()) return Status(Code::kInvalidArgument, "the directory of a store has no name");
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(root, error);
  KVKEEP_TRY_ASSIGN(FileDescriptor fd, open_root(error ? root : absolute, use));
  return std::shared_ptr<FileSystem>(
      std::make_shared<PosixFileSystem>(std::move(fd), error ? root : absolute));
}

}  // namespace kvkeep
