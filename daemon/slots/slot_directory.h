// SlotDirectory: where the server saves its slots and restores them from, and how much may lie
// there at a time.
//
// The server is told a name before it is known how large its slots are, so the name is a link in a
// private directory that is turned to RAM or to the disk once that is known.
//
// Threads: the io thread; paths() of permits from any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "daemon/slots/scratch_directory.h"
#include "kvkeep/status.h"

namespace kvkeep::daemon {

class SlotDirectory;

// Room for one slot file. Removes the file and gives the room back when destroyed.
class SlotFilePermit {
 public:
  SlotFilePermit(SlotDirectory& directory, std::string name, uint64_t bytes)
      : directory_(&directory), name_(std::move(name)), bytes_(bytes) {}
  SlotFilePermit(SlotFilePermit&& other) noexcept
      : directory_(std::exchange(other.directory_, nullptr)),
        name_(std::move(other.name_)),
        bytes_(other.bytes_) {}
  SlotFilePermit& operator=(SlotFilePermit&&) = delete;
  ~SlotFilePermit();

  const std::string& name() const { return name_; }  // As the server is told.
  std::filesystem::path path() const;

 private:
  SlotDirectory* directory_;
  std::string name_;
  uint64_t bytes_;
};

class SlotDirectory {
 public:
  // A private one. kUnavailable where not even a temporary directory can be made.
  static Result<std::unique_ptr<SlotDirectory>> create_private();
  // One that the user chose: the server's --slot-save-path. kUnavailable if it is no directory that
  // files can be made in.
  static Result<std::unique_ptr<SlotDirectory>> use(std::filesystem::path path);
  ~SlotDirectory();

  // What the server is told.
  const std::filesystem::path& path() const { return path_; }

  // Decides where files lie, now that the largest is known: in RAM if two of them fit into a
  // quarter of the RAM that is available, else beside `store`. The sentence says what was chosen
  // and why. No effect on a directory of the user's.
  Result<std::string> place(uint64_t largest_file, const std::filesystem::path& store);

  // Nothing if there is no room beside the files that are there.
  std::optional<SlotFilePermit> reserve(uint64_t bytes);

 private:
  friend class SlotFilePermit;
  explicit SlotDirectory(std::filesystem::path path) : path_(std::move(path)) {}

  Status point_to(const std::filesystem::path& target);

  std::unique_ptr<ScratchDirectory> home_;  // Has the link; null for a directory of the user's.
  std::unique_ptr<ScratchDirectory> on_disk_;
  std::filesystem::path path_;
  uint64_t limit_ = 0;  // Bytes of files at a time.
  uint64_t used_ = 0;
  uint64_t names_ = 0;
};

// Bytes of RAM that programs could still get; 0 if that is not known.
uint64_t available_ram();

}  // namespace kvkeep::daemon
