#include "daemon/server/model_digest.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <regex>
#include <string_view>
#include <system_error>

namespace kvkeep::daemon {
namespace {

constexpr size_t kChunk = 4 << 20;

Status failed(const std::filesystem::path& path, int error) {
  const Code code = error == ENOENT || error == ENOTDIR ? Code::kNotFound : Code::kUnavailable;
  return Status::from_errno(code, path.string() + ": " + std::generic_category().message(error),
                            error);
}

class File {
 public:
  explicit File(const std::filesystem::path& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

class Digest {
 public:
  Digest() : context_(EVP_MD_CTX_new()) {
    ok_ = context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1;
  }
  void add(const void* bytes, size_t size) {
    ok_ = ok_ && EVP_DigestUpdate(context_.get(), bytes, size) == 1;
  }
  void add_size(uint64_t size) {
    std::array<unsigned char, 8> bytes;  // Little-endian.
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = (size >> (8 * i)) & 0xff;
    add(bytes.data(), bytes.size());
  }
  Result<std::string> finish() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes;
    unsigned length = 0;
    if (!ok_ || EVP_DigestFinal_ex(context_.get(), bytes.data(), &length) != 1) {
      return Status(Code::kInternal, "SHA-256: OpenSSL failed");
    }
    std::string hex;
    for (unsigned i = 0; i < length; ++i) {
      hex += "0123456789abcdef"[bytes[i] >> 4];
      hex += "0123456789abcdef"[bytes[i] & 15];
    }
    return hex;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, FreeContext> context_;
  bool ok_ = false;
};

// Where a computation over several files stands.
struct Progress {
  const std::function<bool(uint64_t, uint64_t)>& report;
  uint64_t done = 0;
  uint64_t of = 0;

  Status advance(uint64_t bytes) {
    done += bytes;
    if (!report || report(done, of)) return {};
    return Status(Code::kUnavailable, "the digest of the model was stopped before its end");
  }
};

Status changed(const ModelFile& file) {
  return Status(Code::kFailedPrecondition, file.path.string() + ": changed while it was read");
}

Status add_content(const ModelFile& file, Digest* digest, Progress* progress) {
  const File opened(file.path);
  if (opened.descriptor() < 0) return failed(file.path, errno);
  std::vector<char> chunk(kChunk);
  for (uint64_t left = file.size; left > 0;) {
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(left, chunk.size()));
    const ssize_t got = ::read(opened.descriptor(), chunk.data(), wanted);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(file.path, errno);
    if (got == 0) return changed(file);
    digest->add(chunk.data(), static_cast<size_t>(got));
    left -= static_cast<uint64_t>(got);
    KVKEEP_TRY(progress->advance(static_cast<uint64_t>(got)));
  }
  return {};
}

int64_t nanoseconds(const timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

Result<ModelFile> look_at_model_file(const std::filesystem::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return failed(path, errno);
  if (!S_ISREG(found.st_mode)) {
    return Status(Code::kInvalidArgument, path.string() + ": no regular file");
  }
  std::error_code error;
  ModelFile file;
  file.path = std::filesystem::canonical(path, error);
  if (error) return failed(path, error.value());
  file.size = static_cast<uint64_t>(found.st_size);
#ifdef __APPLE__
  file.mtime_ns = nanoseconds(found.st_mtimespec);
  file.ctime_ns = nanoseconds(found.st_ctimespec);
#else
  file.mtime_ns = nanoseconds(found.st_mtim);
  file.ctime_ns = nanoseconds(found.st_ctim);
#endif
  file.inode = static_cast<uint64_t>(found.st_ino);
  file.device = static_cast<uint64_t>(found.st_dev);
  return file;
}

std::vector<std::filesystem::path> model_parts(const std::filesystem::path& file) {
  static const std::regex form("(.*)-([0-9]{5})-of-([0-9]{5})\\.gguf");
  const std::string name = file.filename().string();
  std::smatch match;
  constexpr size_t kNameMax = 255;  // std::regex recurses over the name.
  if (name.size() > kNameMax || !std::regex_match(name, match, form)) return {file};
  const unsigned part = static_cast<unsigned>(std::stoul(match[2]));
  const unsigned count = static_cast<unsigned>(std::stoul(match[3]));
  if (part < 1 || part > count) return {file};
  std::vector<std::filesystem::path> parts;
  for (unsigned i = 1; i <= count; ++i) {
    std::array<char, 8> number{};
    std::snprintf(number.data(), number.size(), "%05u", i % 100000);
    std::filesystem::path sibling = file;
    sibling.replace_filename(match[1].str() + "-" + number.data() + "-of-" + match[3].str() +
                             ".gguf");
    parts.push_back(std::move(sibling));
  }
  return parts;
}

Result<std::string> digest_of_files(const std::vector<std::filesystem::path>& files,
                                    const std::function<bool(uint64_t, uint64_t)>& progress) {
  std::vector<ModelFile> before;
  Progress state{progress};
  for (const std::filesystem::path& path : files) {
    KVKEEP_TRY_ASSIGN(ModelFile file, look_at_model_file(path));
    state.of += file.size;
    before.push_back(std::move(file));
  }
  Digest digest;
  for (const ModelFile& file : before) {
    digest.add_size(file.size);
    KVKEEP_TRY(add_content(file, &digest, &state));
  }
  for (size_t i = 0; i < files.size(); ++i) {
    KVKEEP_TRY_ASSIGN(const ModelFile after, look_at_model_file(files[i]));
    if (after != before[i]) return changed(before[i]);
  }
  return digest.finish();
}

}  // namespace kvkeep::daemon
