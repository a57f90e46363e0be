// HeaderReader reads what a block's file says about the block, and no tensor data (SCAN-05).
//
// It reads 4 KiB first and the rest of the header only if there is more and the file is long enough
// to hold it. The buffer grows to the header at hand and shrinks again, so a file that merely
// claims a large header costs nothing.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "codec/image.h"
#include "io/file_system.h"
#include "kvkeep/status.h"

namespace kvkeep {

class HeaderReader {
 public:
  // `file_system` must outlive the reader.
  explicit HeaderReader(FileSystem& file_system) : file_system_(file_system) {}

  // kNotFound without a reason: no such file. kUnavailable: the system failed. Else as
  // decode_header(), and kResourceExhausted if there is no memory for the header.
  Result<BlockHeader> read(std::string_view path);

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  Status grow(uint64_t bytes);
  void shrink();
  // Fills [from, to) of the buffer from the file; `to` is raised to a multiple of kIoAlign.
  Status fill(ReadFile& file, uint64_t from, uint64_t to);
  Result<BlockHeader> read_from(ReadFile& file);

  FileSystem& file_system_;
  std::unique_ptr<std::byte[], Free> buffer_;
  uint64_t capacity_ = 0;
};

// Why a file is not served whose header was not read with this status.
MissReason reason_unread(const Status& status);

}  // namespace kvkeep
