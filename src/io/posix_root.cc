#include "io/posix_root.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <string>

#include "io/system_error.h"

namespace kvkeep {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kDirMode = 0700;

std::string quoted(const fs::path& path) { return "'" + path.string() + "'"; }

Status refused(std::string message, int error) {
  return Status::from_errno(Code::kFailedPrecondition, std::move(message), error);
}

// The first part of `path` that is there but is no directory.
fs::path first_non_directory(const fs::path& path) {
  fs::path part;
  for (const fs::path& name : path) {
    part /= name;
    struct stat s;
    if (::stat(part.c_str(), &s) == 0 && !S_ISDIR(s.st_mode)) return part;
  }
  return path;
}

Status missing(const fs::path& root) {
  struct stat s;
  if (::lstat(root.c_str(), &s) == 0 && S_ISLNK(s.st_mode)) {
    return refused(quoted(root) +
                       " is a link to a directory that does not exist: create that directory, or "
                       "remove the link",
                   ENOENT);
  }
  return Status::from_errno(Code::kNotFound, "there is no directory " + quoted(root), ENOENT);
}

Status root_error(const fs::path& root, int error) {
  switch (error) {
    case ENOENT:
      return missing(root);
    case ENOTDIR:
      return refused(quoted(first_non_directory(root)) +
                         " is a file, but a directory is wanted there: remove "
                         "it, or choose another directory",
                     ENOTDIR);
    case EACCES:
    case EPERM:
      return refused(
          "user " + std::to_string(::geteuid()) + " may not use the directory " + quoted(root) +
              ": give this user read, write and search permission, or choose another directory",
          error);
    case EROFS:
      return refused(quoted(root) +
                         " is on a read-only file system: mount it writable, or choose another "
                         "directory",
                     error);
    default:
      return system_error("open directory", root.string(), error);
  }
}

// 0 if the directory is there afterwards (or something of its name is), else the errno.
int make_dirs(const fs::path& path) {
  if (::mkdir(path.c_str(), kDirMode) == 0 || errno == EEXIST) return 0;
  if (errno != ENOENT || !path.has_relative_path()) return errno;
  if (const int error = make_dirs(path.parent_path()); error != 0) return error;
  return ::mkdir(path.c_str(), kDirMode) == 0 || errno == EEXIST ? 0 : errno;
}

// "/a/b/" names the same directory as "/a/b", but mkdir() and parent_path() see a last, empty name.
fs::path without_trailing_slash(fs::path path) {
  return path.has_filename() || !path.has_relative_path() ? path : path.parent_path();
}

}  // namespace

Result<FileDescriptor> open_root(const fs::path& given, RootUse use) {
  const fs::path root = without_trailing_slash(given);
  if (use == RootUse::kCreateAndWrite) {
    if (const int error = make_dirs(root); error != 0) return root_error(root, error);
  }
  FileDescriptor fd(
      uninterrupted([&] { return ::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (!fd.valid()) return root_error(root, errno);
  const int access = use == RootUse::kCreateAndWrite ? R_OK | W_OK | X_OK : R_OK | X_OK;
  if (::faccessat(fd.get(), ".", access, AT_EACCESS) != 0) return root_error(root, errno);
  return fd;
}

}  // namespace kvkeep
