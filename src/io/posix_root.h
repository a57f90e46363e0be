// Opening the directory of a store, with messages that tell a person what to do.
#pragma once

#include <filesystem>

#include "io/file_descriptor.h"
#include "io/posix_file_system.h"
#include "kvkeep/status.h"

namespace kvkeep {

// A descriptor of the directory. `root` may be a link or go through links. Errors as for
// open_posix_file_system().
// REQUIRES: `root` is not empty.
Result<FileDescriptor> open_root(const std::filesystem::path& root, RootUse use);

}  // namespace kvkeep
