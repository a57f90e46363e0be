// Reads whole files in batches: one submission for a whole prompt's blocks.
//
// Threads: read_files() may be called from several threads at once.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "io/file_system.h"
#include "kvkeep/status.h"

namespace kvkeep {

struct ReadRequest {
  std::string path;
  // Where the file's bytes go. Its size is the most that is read; a buffer of round_up(file size,
  // kIoAlign) bytes at an aligned address lets the read bypass the page cache.
  std::span<std::byte> into;
};

struct ReadOutcome {
  Status status;            // kNotFound (no such file), kUnavailable (the system failed).
  FileStat stat;            // Of the file that was read. stat.size may exceed into.size().
  uint64_t bytes_read = 0;  // min(stat.size, into.size()), or less if the file ended earlier.
};

// Called with the index of the request.
using ReadDone = std::function<void(size_t index, ReadOutcome outcome)>;

class ReadEngine {
 public:
  virtual ~ReadEngine() = default;
  // Calls `done` exactly once for each request, on the calling thread, as files arrive, in any
  // order. Returns after the last call; no buffer is touched afterwards.
  virtual void read_files(std::span<const ReadRequest> requests, const ReadDone& done) = 0;
};

// One file after another with pread on the calling thread.
std::unique_ptr<ReadEngine> make_pread_engine(std::shared_ptr<FileSystem> file_system);

}  // namespace kvkeep
