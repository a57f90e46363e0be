// OwnerLock makes a store belong to one writing process.
//
// A living owner has a file .kvkeep/owner-<nonce> that it holds locked; it says in text who that
// is. The file is written under another name, locked, and only then renamed into place, so an owner
// file without a lock always belongs to a process that has ended. .kvkeep/open.lock is held while
// owners are looked for, so two processes that open at the same moment cannot both find nobody.
//
// Threads: any thread; immutable after take().
#pragma once

#include <memory>
#include <string>

#include "io/file_system.h"
#include "kvkeep/status.h"

namespace kvkeep {

class OwnerLock {
 public:
  struct Claim {
    std::string nonce;      // 16 hex characters.
    std::string root_name;  // What messages call the store.
    double now = 0;         // Seconds since the Unix epoch; written into the file.
  };

  // Owner files of ended processes are removed. `file_system` must outlive the lock; .kvkeep/
  // exists. kFailedPrecondition: a living process owns the store (the message names it), or is
  // opening it.
  static Result<std::unique_ptr<OwnerLock>> take(FileSystem& file_system, const Claim& claim);
  // Removes the owner file, then gives the lock back.
  ~OwnerLock();
  OwnerLock(const OwnerLock&) = delete;
  OwnerLock& operator=(const OwnerLock&) = delete;

 private:
  OwnerLock(FileSystem& file_system, std::string path, std::unique_ptr<FileLock> lock);

  FileSystem& file_system_;
  const std::string path_;
  const std::unique_ptr<FileLock> lock_;
};

}  // namespace kvkeep
