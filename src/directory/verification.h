// Reads block files whole and checks them as a load does.
//
// Threads: verify_blocks() one caller at a time; BlockVerifier one at a time.
#pragma once

#include <filesystem>
#include <memory>

#include "codec/image.h"
#include "io/buffer_pool.h"
#include "io/file_system.h"
#include "kvkeep/directory.h"
#include "kvkeep/status.h"

namespace kvkeep {

// A pool for whole files, which asks the system for no more than they need.
std::shared_ptr<BufferPool> make_file_pool();

struct WholeFile {
  FileStat stat;
  PooledBuffer buffer;
};
// kNotFound without a reason: no such file. kUnavailable, kResourceExhausted. damaged() if the file
// ended early.
Result<WholeFile> read_whole_file(FileSystem& file_system, std::string_view path, BufferPool& pool);

class BlockVerifier {
 public:
  // `file_system` must outlive the verifier.
  BlockVerifier(FileSystem& file_system, std::shared_ptr<BufferPool> pool)
      : file_system_(file_system), pool_(std::move(pool)) {}

  // What the header of a whole block says. kNotFound without a reason: the file is gone.
  // `file_size` is set as far as it is known.
  Result<BlockHeader> verify(const BlockHash& hash, uint64_t& file_size);

 private:
  Result<BlockHeader> verify_once(const BlockHash& hash, uint64_t& file_size);

  FileSystem& file_system_;
  const std::shared_ptr<BufferPool> pool_;
};

Result<VerifyTotals> verify_blocks(const std::shared_ptr<FileSystem>& file_system,
                                   const std::filesystem::path& root, const VerifyOptions& options);

}  // namespace kvkeep
