// MappedFile: a slot file in memory. And one that is written from memory.
//
// Threads: one at a time.
// Errors:  kUnavailable, kResourceExhausted (no room), with the path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "kvkeep/status.h"
#include "kvkeep/tensor.h"

namespace kvkeep::daemon {

class MappedFile {
 public:
  // A new file of this size, 0600. Its room is taken at once: a full file system is an error here
  // and no signal later.
  static Result<std::shared_ptr<MappedFile>> create(const std::filesystem::path& path,
                                                    uint64_t bytes);
  // An existing file; follows no link.
  static Result<std::shared_ptr<MappedFile>> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<std::byte> bytes) : bytes_(bytes) {}

  const std::span<std::byte> bytes_;
};

// A new file with this content, 0600. There is none if that fails.
Status write_new_file(const std::filesystem::path& path, std::span<const std::byte> content);

}  // namespace kvkeep::daemon
