// Lists a store: each block file as a record, everything else as totals.
//
// Threads: one at a time.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "codec/image.h"
#include "disk/scan.h"
#include "io/file_system.h"
#include "kvkeep/directory.h"
#include "kvkeep/status.h"

namespace kvkeep {

// The namespaces that a store knows, as records refer to them.
class NamespaceNames {
 public:
  // What cannot be read is not known; that is no error.
  static NamespaceNames read(FileSystem& file_system);
  std::shared_ptr<const NamespaceInfo> find(const std::optional<std::string>& digest) const;
  const std::map<std::string, std::shared_ptr<const NamespaceInfo>>& all() const { return all_; }

 private:
  std::map<std::string, std::shared_ptr<const NamespaceInfo>> all_;
};

// `root` is what the paths of records begin with.
BlockRecord record_of(const std::filesystem::path& root, FoundBlock found,
                      const NamespaceNames& names);

enum class Leftovers : uint8_t {
  kKeep,    // Nothing is changed.
  kRemove,  // Temporary files go. Only for the owner of the store, who is not writing any.
};
Result<DirectoryTotals> list_blocks(FileSystem& file_system, const std::filesystem::path& root,
                                    const std::function<void(BlockRecord)>& visit,
                                    Leftovers leftovers = Leftovers::kKeep);

// REQUIRES: the prefix is not empty.
Result<std::vector<BlockHash>> find_keys(FileSystem& file_system, std::string_view hex_prefix);

}  // namespace kvkeep
