// StoreDirectory is one store on disk, taken for this process: its files, not its index.
//
// It creates the layout, holds the owner lock, writes, removes and quarantines block files, and lists
// what is there. It knows no eviction order and keeps no account: callers do, from the sizes it returns.
//
// Threads: any thread, for different blocks. The caller makes sure that one block has one writer or
// remover at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "codec/image.h"
#include "io/file_system.h"
#include "kvkeep/environment.h"
#include "kvkeep/options.h"
#include "kvkeep/status.h"

namespace kvkeep {

// A block file found by scan(). `header` is absent where it could not be read; `why` then says which
// reason a lookup has.
struct FoundBlock {
  BlockHash hash;  // Of the name.
  uint64_t file_bytes = 0;
  uint64_t allocated = 0;
  double mtime = 0;
  std::optional<BlockHeader> header;
  MissReason why = MissReason::kUnreadable;
};

struct ScanReport {
  uint64_t overhead_bytes = 0;     // Allocated: directories, .kvkeep/, leftovers that must stay.
  uint64_t quarantine_bytes = 0;   // Allocated; not in overhead_bytes.
  uint64_t foreign_files = 0;
  uint64_t foreign_bytes = 0;
  uint64_t temp_files_removed = 0;
  uint64_t unreadable_files = 0;
};

// A block file at its temporary name.
struct TempFile {
  std::string path;
  uint64_t allocated = 0;  // As the file system reports it.
};

// What remove() and quarantine() did: bytes still occupied by the quarantine, and what left it.
struct QuarantineReport {
  uint64_t added_bytes = 0;    // Allocated bytes now in the quarantine that were not before.
  uint64_t removed_bytes = 0;  // Allocated bytes of older files that left it.
};

class StoreDirectory {
 public:
  struct Settings {
    Durability durability = Durability::kNone;
    uint64_t quarantine_max_bytes = 0;
    std::string nonce;  // 16 hex characters, random per process.
  };

  // Creates root, sub-directories, .kvkeep/ and CACHEDIR.TAG, and takes the owner lock.
  // kFailedPrecondition: another process writes here (the message names its pid), or the root may not
  // be written.
  static Result<std::unique_ptr<StoreDirectory>> open(std::shared_ptr<FileSystem> file_system,
                                                      Settings settings);
  ~StoreDirectory();  // Gives the owner lock back and removes the owner file.

  // Calls `found` for every block file, removes temporary files of dead processes and old ones of oMLX.
  // `now` is wall time in seconds.
  Result<ScanReport> scan(double now, const std::function<void(FoundBlock)>& found);

  // Writes the image to a new temporary file, as durable as the settings say. The file is gone again
  // if this fails.
  Result<TempFile> write_temp(const BlockHash& hash, const Image& image);
  // Renames over the block's path.
  Status commit(const TempFile& temp, const BlockHash& hash);
  void discard(const TempFile& temp);

  // True if there was a file.
  Result<bool> remove(const BlockHash& hash);
  // Moves the block's file aside, or deletes it where the quarantine is off or too small for it.
  // kNotFound if it is already gone.
  Result<QuarantineReport> quarantine(const BlockHash& hash, uint64_t allocated);

  Status set_mtime(const BlockHash& hash, double mtime);
  Result<BlockHeader> read_header(const BlockHash& hash);
  Result<FileStat> stat(const BlockHash& hash);
  // Allocation unit in bytes: a file of n bytes is charged round_up(n, unit).
  uint64_t block_bytes() const { return block_bytes_; }
  FileSystem& file_system() { return *file_system_; }

 private:
  StoreDirectory(std::shared_ptr<FileSystem> file_system, Settings settings);

  const std::shared_ptr<FileSystem> file_system_;
  const Settings settings_;
  uint64_t block_bytes_ = 1;
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace kvkeep
