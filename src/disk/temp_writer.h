// TempWriter writes images to temporary files and removes them again.
//
// A temporary file is new (create-exclusive, links not followed) and its name is used once. What is
// written is what the final file will occupy, so that its charge is known before the rename.
//
// Threads: any thread. mu_ is a leaf lock, never held over a system call.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "codec/image.h"
#include "io/file_system.h"
#include "kvkeep/options.h"
#include "kvkeep/status.h"

namespace kvkeep {

// A block file at its temporary name.
struct TempFile {
  std::string path;
  uint64_t allocated = 0;  // As the file system reports it.
};

class TempWriter {
 public:
  struct Settings {
    std::string nonce;  // 16 hex characters.
    Durability durability = Durability::kNone;
    uint64_t block_bytes = 1;  // Allocation unit.
  };
  // `file_system` must outlive the writer.
  TempWriter(FileSystem& file_system, Settings settings);

  // kNotFound: the sub-directory is missing. kUnavailable: the system failed. Either way the file
  // is gone.
  Result<TempFile> write(const BlockHash& hash, const Image& image);
  // Removes the file. If the system refuses, it is counted in leftover_bytes() and tried again by
  // later calls.
  void discard(const TempFile& temp);
  // Allocated bytes of files that should be gone and are not.
  uint64_t leftover_bytes() const KVKEEP_EXCLUDES(mu_);

 private:
  Result<uint64_t> fill(WriteFile& file, const Image& image) const;
  void retry_leftovers() KVKEEP_EXCLUDES(mu_);

  FileSystem& file_system_;
  const Settings settings_;
  std::atomic<uint64_t> sequence_{0};
  mutable Mutex mu_;
  std::vector<TempFile> leftovers_ KVKEEP_GUARDED_BY(mu_);
};

}  // namespace kvkeep
