#include "io/posix_files.h"

#include <algorithm>

#include "io/system_calls.h"
#include "io/system_error.h"

namespace kvkeep {
namespace {

// Some systems refuse more than 2 GiB - 1 in one call.
constexpr size_t kMaxTransfer = size_t{1} << 30;

bool is_aligned(const void* address, uint64_t offset, size_t length) {
  return (reinterpret_cast<uintptr_t>(address) | offset | length) % kIoAlign == 0;
}

// Whether an open file bypasses the page cache now, and whether it still may.
class DirectMode {
 public:
  explicit DirectMode(int fd) : fd_(fd) {}

  bool on() const { return on_; }
  void want(bool on) {
    if (on == on_ || (on && refused_)) return;
    if (set_direct_io(fd_, on)) {
      on_ = on;
    } else {
      refused_ = true;
    }
  }
  void end() {
    want(false);
    refused_ = true;
  }

 private:
  const int fd_;
  bool on_ = false;
  bool refused_ = false;
};

// One transfer. Direct I/O that passed the flag may still be refused here.
template <typename Call>
ssize_t transfer(DirectMode& direct, Call call) {
  const ssize_t n = uninterrupted(call);
  if (n >= 0 || errno != EINVAL || !direct.on()) return n;
  direct.end();
  return uninterrupted(call);
}

Result<FileStat> stat_of(int fd, const std::string& path) {
  struct stat s;
  if (::fstat(fd, &s) != 0) return system_error("stat", path, errno);
  return to_file_stat(s);
}

class PosixReadFile : public ReadFile {
 public:
  PosixReadFile(FileDescriptor fd, std::string path)
      : fd_(std::move(fd)), path_(std::move(path)), direct_(fd_.get()) {}

  Result<FileStat> stat() override { return stat_of(fd_.get(), path_); }

  Result<size_t> pread(uint64_t offset, std::span<std::byte> into) override {
    size_t done = 0;
    while (done < into.size()) {
      const std::span<std::byte> rest =
          into.subspan(done, std::min(into.size() - done, kMaxTransfer));
      const ssize_t n = read_some(offset + done, rest);
      if (n < 0) return system_error("read", path_, errno);
      done += static_cast<size_t>(n);
      if (n == 0) break;
      // A short read is almost always the end. Asking costs less than trying to read on, which
      // would have to leave direct I/O for it.
      if (static_cast<size_t>(n) < rest.size() && ends_at(offset + done)) break;
    }
    return done;
  }

 private:
  ssize_t read_some(uint64_t offset, std::span<std::byte> into) {
    direct_.want(is_aligned(into.data(), offset, into.size()));
    return transfer(direct_, [&] {
      return ::pread(fd_.get(), into.data(), into.size(), static_cast<off_t>(offset));
    });
  }

  bool ends_at(uint64_t offset) {
    const Result<FileStat> s = stat();
    return s.ok() && s->size <= offset;
  }

  const FileDescriptor fd_;
  const std::string path_;
  DirectMode direct_;
};

class PosixWriteFile : public WriteFile {
 public:
  PosixWriteFile(FileDescriptor fd, std::string path)
      : fd_(std::move(fd)), path_(std::move(path)), direct_(fd_.get()) {}

  Status append(BytesView bytes) override {
    while (!bytes.empty()) {
      const BytesView piece = bytes.first(std::min(bytes.size(), kMaxTransfer));
      const ssize_t n = write_some(piece);
      if (n < 0) return system_error("write", path_, errno);
      if (n == 0) return system_error("write", path_, EIO);
      size_ += static_cast<uint64_t>(n);
      bytes = bytes.subspan(static_cast<size_t>(n));
    }
    return {};
  }

  Status truncate(uint64_t size) override {
    if (size > size_) return system_error("truncate", path_, EINVAL);
    const off_t length = static_cast<off_t>(size);
    if (uninterrupted([&] { return ::ftruncate(fd_.get(), length); }) != 0) {
      return system_error("truncate", path_, errno);
    }
    size_ = size;
    return {};
  }

  Status sync_data() override {
    if (uninterrupted([&] { return sync_file_data(fd_.get()); }) == 0) return {};
    return system_error("sync", path_, errno);
  }

  Result<FileStat> stat() override { return stat_of(fd_.get(), path_); }

 private:
  ssize_t write_some(BytesView bytes) {
    if (is_aligned(bytes.data(), size_, bytes.size())) {
      direct_.want(true);
    } else {
      direct_.end();
    }
    return transfer(direct_, [&] {
      return ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(size_));
    });
  }

  const FileDescriptor fd_;
  const std::string path_;
  DirectMode direct_;
  uint64_t size_ = 0;
};

FileKind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return FileKind::kFile;
  if (S_ISDIR(mode)) return FileKind::kDirectory;
  if (S_ISLNK(mode)) return FileKind::kLink;
  return FileKind::kOther;
}

}  // namespace

FileStat to_file_stat(const struct stat& s) {
  constexpr uint64_t kStatBlock = 512;  // Unit of st_blocks, whatever the file system's own is.
  FileStat out;
  out.size = static_cast<uint64_t>(s.st_size);
  out.allocated = static_cast<uint64_t>(s.st_blocks) * kStatBlock;
  out.mtime = mtime_of(s);
  out.kind = kind_of(s.st_mode);
  out.device = static_cast<uint64_t>(s.st_dev);
  out.inode = static_cast<uint64_t>(s.st_ino);
  return out;
}

std::unique_ptr<ReadFile> make_posix_read_file(FileDescriptor fd, std::string path) {
  return std::make_unique<PosixReadFile>(std::move(fd), std::move(path));
}

std::unique_ptr<WriteFile> make_posix_write_file(FileDescriptor fd, std::string path) {
  return std::make_unique<PosixWriteFile>(std::move(fd), std::move(path));
}

}  // namespace kvkeep
