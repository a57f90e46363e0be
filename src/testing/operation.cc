#include "testing/operation.h"

namespace kvkeep::testing {

std::string_view name_of(Op op) {
  switch (op) {
    case Op::kCreateDirs:
      return "create_dirs";
    case Op::kListDir:
      return "list_dir";
    case Op::kStat:
      return "stat";
    case Op::kOpenRead:
      return "open_read";
    case Op::kCreate:
      return "create_exclusive";
    case Op::kRename:
      return "rename";
    case Op::kUnlink:
      return "unlink";
    case Op::kSetMtime:
      return "set_mtime";
    case Op::kSyncDir:
      return "sync_dir";
    case Op::kSpace:
      return "space";
    case Op::kTryLock:
      return "try_lock";
    case Op::kRead:
      return "read";
    case Op::kStatOpen:
      return "stat_open";
    case Op::kAppend:
      return "append";
    case Op::kTruncate:
      return "truncate";
    case Op::kSyncData:
      return "sync_data";
  }
  return "";
}

bool changes_disk(Op op) {
  switch (op) {
    case Op::kCreateDirs:
    case Op::kCreate:
    case Op::kRename:
    case Op::kUnlink:
    case Op::kSetMtime:
    case Op::kSyncDir:
    case Op::kAppend:
    case Op::kTruncate:
    case Op::kSyncData:
      return true;
    default:
      return false;
  }
}

}  // namespace kvkeep::testing
