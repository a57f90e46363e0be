#include "directory/store_access.h"

#include <algorithm>
#include <string>

#include "disk/nonce.h"
#include "disk/store_layout.h"
#include "io/posix_file_system.h"
#include "kvkeep/environment.h"

namespace kvkeep {
namespace {

bool is_directory(FileSystem& file_system, std::string_view path) {
  const Result<FileStat> stat = file_system.stat(path);
  return stat.ok() && stat->kind == FileKind::kDirectory;
}

bool holds_a_block(FileSystem& file_system, std::string_view subdir) {
  bool found = false;
  (void)file_system.list_dir(subdir, [&](const DirEntry& entry) {
    found = found || classify(subdir, entry.name).kind == NameKind::kBlock;
  });
  return found;
}

Status no_store(const std::filesystem::path& root) {
  return Status(Code::kNotFound, "'" + root.string() +
                                     "' is not a kvkeep store: it has no .kvkeep/ and no block "
                                     "files (name another directory)");
}

// What a person can do about a store in use; the owner's pid is in the message already.
Status explain_owned(const Status& status) {
  if (status.code() != Code::kFailedPrecondition || status.sys_errno() != 0) return status;
  return Status(Code::kFailedPrecondition,
                status.message() + "; asking that process to do it is not possible yet");
}

}  // namespace

bool looks_like_store(FileSystem& file_system) {
  if (is_directory(file_system, kServiceDir)) return true;
  const auto subdirs = std::count_if(kSubdirs.begin(), kSubdirs.end(), [&](const char& name) {
    return is_directory(file_system, {&name, 1});
  });
  if (subdirs == static_cast<std::ptrdiff_t>(kSubdirs.size())) return true;
  return std::any_of(kSubdirs.begin(), kSubdirs.end(), [&](const char& name) {
    return holds_a_block(file_system, {&name, 1});
  });
}

Result<std::shared_ptr<FileSystem>> open_store_to_read(const std::filesystem::path& root) {
  if (root.empty()) return Status(Code::kInvalidArgument, "the name of the directory is empty");
  KVKEEP_TRY_ASSIGN(std::shared_ptr<FileSystem> file_system,
                    open_posix_file_system(root, RootUse::kReadExisting));
  if (!looks_like_store(*file_system)) return no_store(root);
  return file_system;
}

Result<OwnedStore> own_store(const std::filesystem::path& root, uint64_t quarantine_max_bytes) {
  KVKEEP_TRY(open_store_to_read(root).status());
  KVKEEP_TRY_ASSIGN(std::shared_ptr<FileSystem> file_system, open_posix_file_system(root));
  StoreDirectory::Settings settings;
  settings.quarantine_max_bytes = quarantine_max_bytes;
  settings.nonce = random_nonce();
  const std::string owner_file = owner_path(settings.nonce);
  settings.root_name = root.string();
  settings.now = system_clock()->wall();
  auto store = StoreDirectory::open(std::move(file_system), std::move(settings));
  if (!store.ok()) return explain_owned(store.status());
  const Result<FileStat> owner = (*store)->file_system().stat(owner_file);
  return OwnedStore{*std::move(store), owner.ok() ? owner->allocated : 0};
}

}  // namespace kvkeep
