// Makes a directory a store: sub-directories, .kvkeep/ and, for a new store, CACHEDIR.TAG.
#pragma once

#include "io/file_system.h"
#include "kvkeep/status.h"

namespace kvkeep {

// Leaves what exists as it is. A tag is written only when .kvkeep/ is missing and the directory
// holds nothing that is not a store's, so that a directory with other things in it stays in its
// backups.
Status create_layout(FileSystem& file_system);

}  // namespace kvkeep
