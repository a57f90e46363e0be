#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "io/system_calls.h"

namespace kvkeep {

bool set_direct_io(int fd, bool on) {
  // The flag is set on the open file, not at open: open() with O_CREAT and O_DIRECT leaves an empty
  // file behind where O_DIRECT is refused.
  return ::fcntl(fd, F_SETFL, on ? O_DIRECT : 0) == 0;
}

int sync_file_data(int fd) { return ::fdatasync(fd); }

int lock_file(int fd) {
  struct flock whole = {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  const int rc = ::fcntl(fd, F_OFD_SETLK, &whole);
  if (rc != 0 && errno == EACCES) errno = EAGAIN;
  return rc;
}

double mtime_of(const struct stat& s) {
  return static_cast<double>(s.st_mtim.tv_sec) + static_cast<double>(s.st_mtim.tv_nsec) * 1e-9;
}

bool populate_pages(void* start, size_t bytes) {
  ::madvise(start, bytes,
            MADV_HUGEPAGE);  // Refused where the kernel was built without: slower, not wrong.
#ifdef MADV_POPULATE_WRITE
  if (::madvise(start, bytes, MADV_POPULATE_WRITE) == 0) return true;
  if (errno != EINVAL) return false;  // EINVAL: a kernel before 5.14.
#endif
  constexpr size_t kPage = 4096;
  auto* bytes_of = static_cast<volatile std::byte*>(start);
  for (size_t at = 0; at < bytes; at += kPage) bytes_of[at] = std::byte{0};
  return true;
}

}  // namespace kvkeep
