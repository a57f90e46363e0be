// The FileSystem of the machine: files below one directory, reached through a descriptor that is
// held.
//
// The directory is resolved once, when it is opened; it may be a link. Everything below is reached
// from that descriptor, component by component, and no link is followed. Large aligned transfers
// bypass the page cache where the file system allows it.
//
// When the directory has been removed, or another one has taken its name, stat("") answers
// kNotFound; nothing is ever created in the other one.
//
// Threads: as FileSystem.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "io/file_system.h"
#include "kvkeep/status.h"

namespace kvkeep {

enum class RootUse : uint8_t {
  kCreateAndWrite,  // Missing directories are created with mode 0700; the root must be writable.
  kReadExisting,    // Nothing is created, and no permission to write is asked for.
};

// kFailedPrecondition: the root is a file, is not permitted or is on a read-only file system;
// kNotFound: kReadExisting and it does not exist. The message names the path and says what to do.
Result<std::shared_ptr<FileSystem>> open_posix_file_system(const std::filesystem::path& root,
                                                           RootUse use = RootUse::kCreateAndWrite);

}  // namespace kvkeep
