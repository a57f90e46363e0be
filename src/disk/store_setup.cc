#include "disk/store_setup.h"

#include <string_view>

#include "base/bytes.h"
#include "disk/store_layout.h"

namespace kvkeep {
namespace {

// https://bford.info/cachedir/: the first 43 bytes are fixed.
constexpr std::string_view kTagText =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This directory holds a kvkeep store: cached blocks that can be computed again.\n"
    "# Backup programs that know this tag leave it out.\n";

// True if the root has no .kvkeep/ and nothing but sub-directories.
Result<bool> is_new_and_alone(FileSystem& file_system) {
  bool alone = true;
  KVKEEP_TRY(file_system.list_dir("", [&alone](const DirEntry& entry) {
    if (!is_subdir(entry.name)) alone = false;
  }));
  return alone;
}

// A store works without its tag, so a failure (a full disk) only leaves it out.
void write_tag(FileSystem& file_system) {
  const Result<std::unique_ptr<WriteFile>> file = file_system.create_exclusive(kCacheTag);
  if (!file.ok()) return;
  if (!(*file)->append(as_byte_span(kTagText)).ok()) (void)file_system.unlink(kCacheTag);
}

}  // namespace

Status create_layout(FileSystem& file_system) {
  KVKEEP_TRY(file_system.create_dirs(""));
  KVKEEP_TRY_ASSIGN(const bool tagged, is_new_and_alone(file_system));
  if (tagged) write_tag(file_system);
  for (const char& subdir : kSubdirs) KVKEEP_TRY(file_system.create_dirs({&subdir, 1}));
  return file_system.create_dirs(kServiceDir);
}

}  // namespace kvkeep
