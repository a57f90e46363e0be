// The blocks of a store as ls and stats need them: everything that is shown, without the rest.
//
// Threads: one thread.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "cli/console.h"
#include "kvkeep/directory.h"

namespace kvkeep::cli {

// list_blocks() with a line of progress.
Result<DirectoryTotals> list_with_progress(const std::filesystem::path& store, Console& console,
                                           const std::function<void(BlockRecord)>& visit);

// Seconds since the Unix epoch.
double now();

}  // namespace kvkeep::cli
