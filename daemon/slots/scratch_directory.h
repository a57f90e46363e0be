// ScratchDirectory: a private directory that is gone with its process.
//
// What a process that was killed has left behind is removed when the next one makes its own beside
// it: the directories of living processes are locked.
//
// Threads: one at a time.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "kvkeep/status.h"

namespace kvkeep::daemon {

class ScratchDirectory {
 public:
  // `parent`/`prefix`XXXXXX, 0700. kUnavailable with the path and the reason.
  static Result<std::unique_ptr<ScratchDirectory>> create(const std::filesystem::path& parent,
                                                          const std::string& prefix);
  // Removes it with everything in it.
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  ScratchDirectory(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}

  const std::filesystem::path path_;
  const int lock_;
};

}  // namespace kvkeep::daemon
