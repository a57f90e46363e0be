#include "disk/owner_lock.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "base/bytes.h"
#include "disk/store_layout.h"

namespace kvkeep {
namespace {

std::string in_service_dir(std::string_view name) {
  return std::string(kServiceDir) + "/" + std::string(name);
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

std::string describe_self(double now) {
  return "pid " + std::to_string(getpid()) + "\nhost " + host_name() + "\ntime " +
         std::to_string(static_cast<int64_t>(now)) + "\n";
}

// The value of line "<key> <value>", without anything that could disturb a terminal.
std::string field(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.size() <= key.size() || line.substr(0, key.size()) != key) continue;
    std::string value(line.substr(key.size() + 1));
    std::replace_if(
        value.begin(), value.end(), [](char c) { return c <= ' ' || c > '~'; }, '?');
    return value;
  }
  return {};
}

// "process 1234", "process 1234 on host box", or "another process" where the file says nothing.
std::string describe_owner(FileSystem& file_system, std::string_view path) {
  std::array<std::byte, 512> buffer;
  Result<std::unique_ptr<ReadFile>> file = file_system.open_read(path);
  if (!file.ok()) return "another process";
  const Result<size_t> n = (*file)->pread(0, buffer);
  const std::string_view text = n.ok() ? as_text({buffer.data(), *n}) : std::string_view();
  const std::string pid = field(text, "pid");
  if (pid.empty()) return "another process";
  const std::string host = field(text, "host");
  const bool elsewhere = !host.empty() && host != host_name();
  return "process " + pid + (elsewhere ? " on host " + host : "");
}

Status create_if_missing(FileSystem& file_system, std::string_view path) {
  const Result<std::unique_ptr<WriteFile>> file = file_system.create_exclusive(path);
  if (file.ok() || file.status().sys_errno() == EEXIST) return {};
  return file.status();
}

Result<std::unique_ptr<FileLock>> lock_opening(FileSystem& file_system,
                                               const OwnerLock::Claim& claim) {
  KVKEEP_TRY(create_if_missing(file_system, kOpenLock));
  Result<std::unique_ptr<FileLock>> lock = file_system.try_lock(kOpenLock);
  if (lock.ok() || lock.status().code() != Code::kFailedPrecondition) return lock;
  return Status(Code::kFailedPrecondition,
                claim.root_name + " is being opened by another process: try again");
}

// Removes what ended owners left. REQUIRES: open.lock is held.
Status clear_owner(FileSystem& file_system, const OwnerLock::Claim& claim,
                   const std::string& name) {
  const std::string path = in_service_dir(name);
  const Result<std::unique_ptr<FileLock>> lock = file_system.try_lock(path);
  if (lock.ok()) {
    const Status gone = file_system.unlink(path);
    return gone.code() == Code::kNotFound ? Status() : gone;
  }
  if (lock.status().code() == Code::kNotFound) return {};
  if (lock.status().code() != Code::kFailedPrecondition) return lock.status();
  return Status(Code::kFailedPrecondition, claim.root_name + " is in use by " +
                                               describe_owner(file_system, path) + " (" + name +
                                               "): close it or use another directory");
}

Status clear_ended_owners(FileSystem& file_system, const OwnerLock::Claim& claim) {
  std::vector<std::string> names;
  KVKEEP_TRY(file_system.list_dir(kServiceDir, [&](const DirEntry& entry) {
    if (entry.kind == FileKind::kDirectory || entry.kind == FileKind::kLink) return;
    if (owner_nonce(entry.name) || is_owner_temp(entry.name)) names.push_back(entry.name);
  }));
  for (const std::string& name : names) KVKEEP_TRY(clear_owner(file_system, claim, name));
  return {};
}

// An owner file under a temporary name, locked.
Result<std::unique_ptr<FileLock>> write_locked(FileSystem& file_system, const std::string& path,
                                               double now) {
  {
    KVKEEP_TRY_ASSIGN(const std::unique_ptr<WriteFile> file, file_system.create_exclusive(path));
    // The text is for people. A full disk must not keep its owner from opening and making room.
    (void)file->append(as_byte_span(describe_self(now)));
  }
  Result<std::unique_ptr<FileLock>> lock = file_system.try_lock(path);
  if (!lock.ok()) (void)file_system.unlink(path);
  return lock;
}

}  // namespace

OwnerLock::OwnerLock(FileSystem& file_system, std::string path, std::unique_ptr<FileLock> lock)
    : file_system_(file_system), path_(std::move(path)), lock_(std::move(lock)) {}

Result<std::unique_ptr<OwnerLock>> OwnerLock::take(FileSystem& file_system, const Claim& claim) {
  if (!is_nonce(claim.nonce)) {
    return Status(Code::kInvalidArgument, "nonce '" + claim.nonce + "' is not 16 hex characters");
  }
  KVKEEP_TRY_ASSIGN(const std::unique_ptr<FileLock> opening, lock_opening(file_system, claim));
  KVKEEP_TRY(clear_ended_owners(file_system, claim));
  const std::string path = owner_path(claim.nonce);
  const std::string aside = path + ".tmp";
  KVKEEP_TRY_ASSIGN(std::unique_ptr<FileLock> lock, write_locked(file_system, aside, claim.now));
  if (Status renamed = file_system.rename(aside, path); !renamed.ok()) {
    (void)file_system.unlink(aside);
    return renamed;
  }
  return std::unique_ptr<OwnerLock>(new OwnerLock(file_system, path, std::move(lock)));
}

OwnerLock::~OwnerLock() { (void)file_system_.unlink(path_); }

}  // namespace kvkeep
