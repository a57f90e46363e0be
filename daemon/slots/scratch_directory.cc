#include "daemon/slots/scratch_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace kvkeep::daemon {
namespace {

// A directory's own lock; -1 where somebody has it, or it cannot be opened.
int lock_directory(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  struct stat info {};
  if (::fstat(fd, &info) == 0 && info.st_uid == ::geteuid() &&
      ::flock(fd, LOCK_EX | LOCK_NB) == 0) {
    return fd;
  }
  ::close(fd);
  return -1;
}

void remove_leftovers(const std::filesystem::path& parent, const std::string& prefix) {
  std::error_code error, ignored;
  for (std::filesystem::directory_iterator at(parent, error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().filename().string().rfind(prefix, 0) != 0) continue;
    const int lock = lock_directory(at->path());
    if (lock < 0) continue;
    std::filesystem::remove_all(at->path(), ignored);
    ::close(lock);
  }
}

}  // namespace

Result<std::unique_ptr<ScratchDirectory>> ScratchDirectory::create(
    const std::filesystem::path& parent, const std::string& prefix) {
  remove_leftovers(parent, prefix);
  std::string path = (parent / (prefix + "XXXXXX")).string();
  if (::mkdtemp(path.data()) == nullptr) {
    return Status::from_errno(Code::kUnavailable, path + ": " + std::strerror(errno), errno);
  }
  const int lock = lock_directory(path);
  if (lock < 0) {
    return Status(Code::kUnavailable, path + ": cannot be locked");
  }
  return std::unique_ptr<ScratchDirectory>(new ScratchDirectory(path, lock));
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  ::close(lock_);
}

}  // namespace kvkeep::daemon
