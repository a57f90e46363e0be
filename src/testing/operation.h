// What the file system doubles see: one call, with everything that a test may ask about it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

namespace kvkeep::testing {

enum class Op : uint8_t {
  kCreateDirs,
  kListDir,
  kStat,
  kOpenRead,
  kCreate,
  kRename,
  kUnlink,
  kSetMtime,
  kSyncDir,
  kSpace,
  kTryLock,
  kRead,      // ReadFile::pread
  kStatOpen,  // stat() of an open file
  kAppend,
  kTruncate,
  kSyncData,
};

// "create_dirs", "append", …
std::string_view name_of(Op op);

// Whether it changes what the disk holds, now or (sync) after power loss.
bool changes_disk(Op op);

struct Operation {
  Op op = Op::kStat;
  std::string path;    // For open files: the path at which they were opened.
  std::string to;      // kRename.
  uint64_t bytes = 0;  // kAppend, kRead: how many were asked for. kTruncate: the new size.
  double mtime = 0;    // kSetMtime.
  uint64_t file = 0;   // Which created file: kCreate, kAppend, kTruncate, kSyncData. From 1 on.
  std::string data;    // kAppend, in the record of changes only: what was written.
  std::thread::id thread = std::this_thread::get_id();
};

}  // namespace kvkeep::testing
