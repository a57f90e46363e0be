#include "daemon/slots/slot_directory.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "kvkeep/size_string.h"

namespace kvkeep::daemon {
namespace {

constexpr const char* kRam = "/dev/shm";
// Files that the limit leaves room for.
constexpr uint64_t kFiles = 2;

std::filesystem::path temporary_parent() {
  std::error_code error;
  if (::access(kRam, W_OK) == 0 && std::filesystem::is_directory(kRam, error)) return kRam;
  return std::filesystem::temp_directory_path(error);
}

std::string own_prefix() { return "kvkeep-llama-" + std::to_string(::geteuid()) + "-"; }

uint64_t free_bytes(const std::filesystem::path& path) {
  struct statvfs info {};
  if (::statvfs(path.c_str(), &info) != 0) return 0;
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

}  // namespace

uint64_t available_ram() {
  std::ifstream info("/proc/meminfo");
  std::string name;
  uint64_t kilobytes = 0;
  while (info >> name >> kilobytes) {
    if (name == "MemAvailable:") return kilobytes << 10;
    info.ignore(256, '\n');
  }
  return 0;
}

SlotFilePermit::~SlotFilePermit() {
  if (directory_ == nullptr) return;
  ::unlink(path().c_str());
  directory_->used_ -= bytes_;
}

std::filesystem::path SlotFilePermit::path() const { return directory_->path_ / name_; }

Result<std::unique_ptr<SlotDirectory>> SlotDirectory::create_private() {
  Result<std::unique_ptr<ScratchDirectory>> home =
      ScratchDirectory::create(temporary_parent(), own_prefix());
  if (!home.ok()) return home.status();
  std::unique_ptr<SlotDirectory> made(new SlotDirectory((*home)->path() / "slots"));
  made->home_ = *std::move(home);
  const std::filesystem::path files = made->home_->path() / "files";
  std::error_code error;
  std::filesystem::create_directory(files, error);
  if (error) return Status(Code::kUnavailable, files.string() + ": " + error.message());
  std::filesystem::permissions(files, std::filesystem::perms::owner_all, error);
  KVKEEP_TRY(made->point_to(files));
  return made;
}

Result<std::unique_ptr<SlotDirectory>> SlotDirectory::use(std::filesystem::path path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error) ||
      ::access(path.c_str(), R_OK | W_OK | X_OK) != 0) {
    return Status(Code::kUnavailable,
                  path.string() + ": " + (error ? error.message() : std::strerror(errno)));
  }
  std::unique_ptr<SlotDirectory> made(new SlotDirectory(std::move(path)));
  return made;
}

SlotDirectory::~SlotDirectory() = default;

Status SlotDirectory::point_to(const std::filesystem::path& target) {
  ::unlink(path_.c_str());
  if (::symlink(target.c_str(), path_.c_str()) == 0) return Status();
  return Status::from_errno(Code::kUnavailable, path_.string() + ": " + std::strerror(errno),
                            errno);
}

Result<std::string> SlotDirectory::place(uint64_t largest_file,
                                         const std::filesystem::path& store) {
  limit_ = kFiles * largest_file;
  const std::string two = "two full slots (" + format_bytes(limit_) + ")";
  if (home_ == nullptr) return "slot files in " + path_.string() + ", at most " + two;
  const std::filesystem::path parent = home_->path().parent_path();
  const uint64_t available = parent == kRam ? available_ram() : 0;
  if (limit_ <= available / 4 && limit_ <= free_bytes(parent)) {
    return "slot files in RAM, " + parent.string() + ": " + two + " fit into a quarter of the " +
           format_bytes(available) + " available";
  }
  std::error_code error;
  std::filesystem::create_directories(store.parent_path(), error);
  Result<std::unique_ptr<ScratchDirectory>> disk =
      ScratchDirectory::create(store.parent_path(), "." + store.filename().string() + ".slots-");
  if (!disk.ok()) return disk.status();
  on_disk_ = *std::move(disk);
  KVKEEP_TRY(point_to(on_disk_->path()));
  return "slot files in " + on_disk_->path().string() + ": " + two +
         " do not fit into a quarter of the " + format_bytes(available) + " of RAM available";
}

std::optional<SlotFilePermit> SlotDirectory::reserve(uint64_t bytes) {
  if (used_ + bytes > limit_ && used_ > 0) return std::nullopt;
  used_ += bytes;
  const std::string name =
      "kvkeep-" + std::to_string(::getpid()) + "-" + std::to_string(++names_) + ".slot";
  return std::optional<SlotFilePermit>(std::in_place, *this, name, bytes);
}

}  // namespace kvkeep::daemon
