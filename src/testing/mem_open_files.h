// Open files and locks of MemFileSystem.
#pragma once

#include <memory>
#include <string>

#include "testing/mem_tree.h"

namespace kvkeep::testing {

// `node` counts as open already; the file closes it.
std::unique_ptr<ReadFile> make_mem_reader(std::shared_ptr<MemTree> tree, MemNodePtr node);
std::unique_ptr<WriteFile> make_mem_writer(std::shared_ptr<MemTree> tree, MemNodePtr node,
                                           std::string path);
// `node` counts as open and locked already.
std::unique_ptr<FileLock> make_mem_lock(std::shared_ptr<MemTree> tree, MemNodePtr node);

}  // namespace kvkeep::testing
