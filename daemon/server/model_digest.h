// Which model it is, told by its bytes: a digest of its files, and a book that remembers digests so
// that files of many gigabytes are read once.
//
// Threads: the functions are pure but for the files; a DigestBook is for one thread at a time.
// Several processes may use one file: the last to write keeps what the others wrote before.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kvkeep/status.h"

namespace kvkeep::daemon {

// What changes when a file does, without reading it.
struct ModelFile {
  std::filesystem::path path{};  // Absolute, of the file itself where the name is a link.
  uint64_t size = 0;
  int64_t mtime_ns = 0;  // Since the Unix epoch, as is ctime_ns.
  int64_t ctime_ns = 0;
  uint64_t inode = 0;
  uint64_t device = 0;

  bool operator==(const ModelFile&) const = default;
};

// kNotFound; kInvalidArgument: no regular file; kUnavailable.
Result<ModelFile> look_at_model_file(const std::filesystem::path& path);

// All files of the model that the file belongs to: of "m-00002-of-00003.gguf" the three of that
// name, of any other the file alone. They need not be there.
std::vector<std::filesystem::path> model_parts(const std::filesystem::path& file);

// SHA-256 over size and content of each file in turn, in lower hexadecimal digits.
// `progress` hears every few megabytes how many bytes are done; false stops.
// kUnavailable: stopped, or a file cannot be read. kFailedPrecondition: a file changed meanwhile.
// Also what look_at_model_file says.
Result<std::string> digest_of_files(
    const std::vector<std::filesystem::path>& files,
    const std::function<bool(uint64_t done, uint64_t of)>& progress = {});

// Digests of models by their files. Keeps the 256 that were noted last.
class DigestBook {
 public:
  // A file that is missing or damaged is an empty book.
  explicit DigestBook(std::filesystem::path file);

  // The digest that was noted for just these files as they are now.
  std::optional<std::string> find(const std::vector<std::filesystem::path>& parts) const;

  // Notes it and writes the book, readable by its owner only. A book that cannot be written only
  // costs the time to compute the digest again.
  void note(const std::vector<std::filesystem::path>& parts, const std::string& digest);

 private:
  struct Entry {
    std::vector<ModelFile> files{};
    std::string digest{};
  };
  static std::vector<Entry> read(const std::filesystem::path& file);
  static void write(const std::filesystem::path& file, const std::vector<Entry>& entries);

  std::filesystem::path file_;
  std::vector<Entry> entries_;  // Oldest first.
};

}  // namespace kvkeep::daemon
