#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "io/system_calls.h"

namespace kvkeep {

#ifdef F_NOCACHE
bool set_direct_io(int fd, bool on) { return ::fcntl(fd, F_NOCACHE, on ? 1 : 0) == 0; }
#else
bool set_direct_io(int, bool on) { return !on; }
#endif

int sync_file_data(int fd) {
#ifdef F_FULLFSYNC
  // fsync() of macOS stops at the drive's own cache.
  if (::fcntl(fd, F_FULLFSYNC) == 0) return 0;
#endif
  return ::fsync(fd);
}

int lock_file(int fd) {
  const int rc = ::flock(fd, LOCK_EX | LOCK_NB);
  if (rc != 0 && errno == EWOULDBLOCK) errno = EAGAIN;
  return rc;
}

double mtime_of(const struct stat& s) {
#ifdef __APPLE__
  const struct timespec& t = s.st_mtimespec;
#else
  const struct timespec& t = s.st_mtim;
#endif
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

bool populate_pages(void* start, size_t bytes) {
  constexpr size_t kPage = 4096;
  auto* bytes_of = static_cast<volatile std::byte*>(start);
  for (size_t at = 0; at < bytes; at += kPage) bytes_of[at] = std::byte{0};
  return true;
}

}  // namespace kvkeep
