// TempDir is a fresh directory that is gone, with everything in it, when the test ends.
//
// Threads: one thread at a time.
#pragma once

#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

namespace kvkeep::testing {

class TempDir {
 public:
  // In the system's directory for temporary files, or in `parent`. Ends the test program if that
  // fails.
  TempDir() : TempDir(std::filesystem::temp_directory_path()) {}
  explicit TempDir(const std::filesystem::path& parent) {
    std::string name = (parent / "kvkeep-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      std::perror(name.c_str());
      std::abort();
    }
    path_ = name;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;  // What a test made unremovable stays behind; the test has said why.
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace kvkeep::testing
