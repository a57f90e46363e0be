#include "daemon/store_size.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <memory>

#include "kvkeep/environment.h"

namespace kvkeep::daemon {
namespace {

constexpr uint64_t kAtMost = uint64_t{50} << 30;
constexpr uint64_t kHotAtMost = uint64_t{1} << 30;

}  // namespace

uint64_t bytes_below(const std::filesystem::path& directory) {
  uint64_t bytes = 0;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error)) {
    struct stat info {};
    if (::lstat(at->path().c_str(), &info) == 0)
      bytes += static_cast<uint64_t>(info.st_blocks) * 512;
  }
  return bytes;
}

uint64_t default_hot_size() {
  const std::shared_ptr<SystemInfo> system = system_info();
  const Result<int64_t> page = system->page_size();
  const Result<int64_t> pages = system->physical_pages();
  if (!page.ok() || !pages.ok()) return 0;
  return std::min(kHotAtMost, static_cast<uint64_t>(*page) * static_cast<uint64_t>(*pages) / 20);
}

uint64_t default_max_size(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::path there = std::filesystem::absolute(directory, error);
  while (there.has_relative_path() && !std::filesystem::exists(there, error)) {
    there = there.parent_path();
  }
  struct statvfs info {};
  if (::statvfs(there.c_str(), &info) != 0) return kAtMost;
  return std::min(kAtMost, static_cast<uint64_t>(info.f_blocks) * info.f_frsize / 10);
}

}  // namespace kvkeep::daemon
