#include "disk/service_file.h"

#include "base/bytes.h"

namespace kvkeep {
namespace {

constexpr const char* kTempSuffix = ".tmp";

}  // namespace

Result<std::string> read_service_file(FileSystem& file_system, std::string_view path,
                                      uint64_t max_bytes) {
  KVKEEP_TRY_ASSIGN(const std::unique_ptr<ReadFile> file, file_system.open_read(path));
  KVKEEP_TRY_ASSIGN(const FileStat stat, file->stat());
  if (stat.size > max_bytes) {
    return Status(Code::kDataLoss,
                  std::string(path) + ": " + std::to_string(stat.size) + " bytes are too many");
  }
  std::string text(stat.size, '\0');
  KVKEEP_TRY_ASSIGN(const size_t n,
                    file->pread(0, std::as_writable_bytes(std::span(text.data(), text.size()))));
  text.resize(n);
  return text;
}

Status replace_service_file(FileSystem& file_system, std::string_view path, std::string_view text) {
  const std::string aside = std::string(path) + kTempSuffix;
  const Status cleared = file_system.unlink(aside);  // Left by an owner that ended.
  if (!cleared.ok() && cleared.code() != Code::kNotFound) return cleared;
  Status written;
  {
    KVKEEP_TRY_ASSIGN(const std::unique_ptr<WriteFile> file, file_system.create_exclusive(aside));
    written = file->append(as_byte_span(text));
  }
  if (written.ok()) written = file_system.rename(aside, path);
  if (!written.ok()) (void)file_system.unlink(aside);
  return written;
}

}  // namespace kvkeep
