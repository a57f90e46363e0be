#include "daemon/slots/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace kvkeep::daemon {
namespace {

Status failed(const std::filesystem::path& path, const char* what, int error) {
  const bool full = error == ENOSPC || error == EDQUOT || error == ENOMEM;
  return Status::from_errno(full ? Code::kResourceExhausted : Code::kUnavailable,
                            path.string() + ": " + what + ": " + std::strerror(error), error);
}

// Closes the descriptor at the end of a scope: a mapping does not need it.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

Result<std::span<std::byte>> map(const std::filesystem::path& path, int fd, uint64_t bytes,
                                 int protection) {
  if (bytes == 0) return std::span<std::byte>();
  void* at = ::mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return failed(path, "mmap", errno);
  return std::span(static_cast<std::byte*>(at), bytes);
}

}  // namespace

Result<std::shared_ptr<MappedFile>> MappedFile::create(const std::filesystem::path& path,
                                                       uint64_t bytes) {
  const Descriptor file{
      ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (file.fd < 0) return failed(path, "create", errno);
  const int no_room = ::posix_fallocate(file.fd, 0, static_cast<off_t>(bytes));
  if (no_room != 0) {
    ::unlink(path.c_str());
    return failed(path, "allocate", no_room);
  }
  const Result<std::span<std::byte>> mapped = map(path, file.fd, bytes, PROT_READ | PROT_WRITE);
  if (!mapped.ok()) {
    ::unlink(path.c_str());
    return mapped.status();
  }
  return std::shared_ptr<MappedFile>(new MappedFile(*mapped));
}

Result<std::shared_ptr<MappedFile>> MappedFile::open(const std::filesystem::path& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC)};
  if (file.fd < 0) return failed(path, "open", errno);
  struct stat info {};
  if (::fstat(file.fd, &info) != 0) return failed(path, "stat", errno);
  const Result<std::span<std::byte>> mapped =
      map(path, file.fd, static_cast<uint64_t>(info.st_size), PROT_READ);
  if (!mapped.ok()) return mapped.status();
  return std::shared_ptr<MappedFile>(new MappedFile(*mapped));
}

Status write_new_file(const std::filesystem::path& path, std::span<const std::byte> content) {
  const Descriptor file{
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (file.fd < 0) return failed(path, "create", errno);
  while (!content.empty()) {
    const ssize_t written = ::write(file.fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int error = errno;
      ::unlink(path.c_str());
      return failed(path, "write", error);
    }
    content = content.subspan(static_cast<size_t>(written));
  }
  return Status();
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace kvkeep::daemon
