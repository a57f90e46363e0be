// StoreDirectory is one store on disk, taken for this process: its files, not its index.
//
// It creates the layout, holds the owner lock, writes, removes and quarantines block files, and
// lists what is there. It knows no eviction order and keeps no account: callers do, from the sizes
// it returns. What is not a regular file is never followed, replaced or removed, whatever its name.
// If .kvkeep/ is gone (the drive was unplugged), nothing is created in its place.
//
// Threads: any thread, for different blocks. The caller makes sure that one block has one writer or
// remover at a time.
// Errors:  kUnavailable with the errno where the system failed; kNotFound only where it is
// promised.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "codec/image.h"
#include "disk/quarantine.h"
#include "disk/scan.h"
#include "disk/temp_writer.h"
#include "io/file_system.h"
#include "kvkeep/options.h"
#include "kvkeep/status.h"

namespace kvkeep {

class StoreDirectory {
 public:
  struct Settings {
    Durability durability = Durability::kNone;
    uint64_t quarantine_max_bytes = 0;
    std::string nonce;      // 16 hex characters, random per process.
    std::string root_name;  // What messages call the store: its path.
    double now = 0;         // Wall time in seconds; the owner file says when the store was opened.
  };

  // Creates root, sub-directories and .kvkeep/, and takes the owner lock. A store that is new and
  // alone in its directory gets a CACHEDIR.TAG. kFailedPrecondition: another process writes here
  // (the message names its pid), or the root cannot be a store or may not be written. kUnavailable:
  // the system failed.
  static Result<std::unique_ptr<StoreDirectory>> open(std::shared_ptr<FileSystem> file_system,
                                                      Settings settings);
  ~StoreDirectory();
  // Gives the owner lock back and removes the owner file; the destructor does it otherwise.
  // Afterwards another process may own the store: write, remove and quarantine nothing any more.
  // REQUIRES: called at most once at a time.
  void release_owner();

  struct Helpers {
    Executor* executor = nullptr;
    unsigned count = 0;
  };
  // Calls `found` for every block file, removes temporary files of ended processes and old ones of
  // oMLX. `now` is wall time in seconds. quarantine_bytes is what open() found; later changes come
  // from quarantine(). Temporary files of this process are not in the report: their writer counts
  // them. With helpers, `found` is called from several threads at once; helpers that never start
  // are not waited for.
  Result<ScanReport> scan(double now, const std::function<void(FoundBlock)>& found) {
    return scan(now, found, Helpers());
  }
  Result<ScanReport> scan(double now, const std::function<void(FoundBlock)>& found,
                          Helpers helpers);

  // The same once more, on this thread, reading only the headers that are wanted. kUnavailable also
  // if the store is gone.
  Result<ScanReport> relist(double now,
                            const std::function<bool(const BlockHash&, const FileStat&)>& wants,
                            const std::function<void(FoundBlock)>& found);

  // Writes the image to a new temporary file, as durable as the settings say. The file is gone
  // again if this fails. At no moment does it occupy more than round_up(file bytes, block_bytes()),
  // unless the file system itself adds to that.
  Result<TempFile> write_temp(const BlockHash& hash, const Image& image);

  struct Committed {
    Status
        durable;  // Of the directory's sync (kDataAndDir): the block is in place even if it failed.
  };
  // Renames over the block's path. An error means that the older file, if any, is untouched and the
  // temporary file is gone. kFailedPrecondition: something that is not a file has the block's name.
  Result<Committed> commit(const TempFile& temp, const BlockHash& hash);
  void discard(const TempFile& temp);
  // Allocated bytes of temporary files that the system refused to remove. Later writes try again.
  uint64_t leftover_bytes() const;

  // True if there was a block file.
  Result<bool> remove(const BlockHash& hash);
  // Moves the block's file aside, or deletes it where the quarantine is off or too small for it.
  // `allocated` is its charge. kNotFound if it is already gone.
  Result<QuarantineReport> quarantine(const BlockHash& hash, uint64_t allocated);

  // These three: kNotFound if there is no such block file.
  Status set_mtime(const BlockHash& hash, double mtime);
  // Also errors of decode_header(), and kDataLoss with kDamaged if the file is another block.
  Result<BlockHeader> read_header(const BlockHash& hash);
  Result<FileStat> stat(const BlockHash& hash);

  // Allocation unit in bytes: a file of n bytes is charged round_up(n, unit).
  uint64_t block_bytes() const { return block_bytes_; }
  FileSystem& file_system() { return *file_system_; }

 private:
  StoreDirectory(std::shared_ptr<FileSystem> file_system, Settings settings);
  Status take();
  // kUnavailable if the root or .kvkeep/ is gone.
  Status still_there();
  Status restore_subdir(std::string_view subdir);
  Status publish(const TempFile& temp, const std::string& path);

  const std::shared_ptr<FileSystem> file_system_;
  const Settings settings_;
  uint64_t block_bytes_ = 1;
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace kvkeep
