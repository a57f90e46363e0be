// An open file descriptor that closes itself, and the loop that a signal makes necessary.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace kvkeep {

// Move-only. Threads: one thread at a time.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  // Leaves errno alone, so that a failed call can still be reported after it.
  ~FileDescriptor() {
    const int error = errno;
    if (fd_ >= 0) ::close(fd_);
    errno = error;
  }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  // The caller closes it from now on.
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// Calls again while a signal interrupts.
template <typename Call>
auto uninterrupted(Call call) {
  auto rc = call();
  while (rc == -1 && errno == EINTR) rc = call();
  return rc;
}

}  // namespace kvkeep
