// Looks at one block file closely: metadata, layers and tensors, and what a load would say.
//
// Threads: any thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "directory/listing.h"
#include "io/file_system.h"
#include "kvkeep/directory.h"
#include "kvkeep/status.h"

namespace kvkeep {

// Which file, and what it should be.
struct InspectedFile {
  std::string path;                   // Below the root of the file system.
  std::filesystem::path shown;        // What the record says.
  std::optional<BlockHash> expected;  // Of its name; absent: whatever it says.
};

// kNotFound: no such file. kUnavailable: it could not be read. kResourceExhausted. Anything wrong
// inside the file is part of the answer.
Result<BlockInspection> inspect(FileSystem& file_system, const InspectedFile& file,
                                const NamespaceNames& names);

}  // namespace kvkeep
