// Ways into a store for tools: read only, or owning it as a cache does.
//
// Threads: any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "disk/store_directory.h"
#include "io/file_system.h"
#include "kvkeep/status.h"

namespace kvkeep {

// True for what is_store() calls a store.
bool looks_like_store(FileSystem& file_system);

// Nothing is created or changed through it. kNotFound: no such directory, or no store in it.
Result<std::shared_ptr<FileSystem>> open_store_to_read(const std::filesystem::path& root);

struct OwnedStore {
  std::unique_ptr<StoreDirectory> directory;
  uint64_t owner_bytes = 0;  // Allocated, of the owner file, which goes again at the end.
};
// Takes the owner lock. Only of a store that is there; none is made. `quarantine_max_bytes`: what
// the quarantine is cut to. kNotFound as above; else as StoreDirectory::open().
Result<OwnedStore> own_store(const std::filesystem::path& root, uint64_t quarantine_max_bytes);

}  // namespace kvkeep
