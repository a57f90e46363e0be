// What several verbs do: look at every block, and show how far long work has come.
//
// Threads: one thread.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "cli/console.h"
#include "cli/progress.h"
#include "kvkeep/directory.h"

namespace kvkeep::cli {

// list_blocks() with a line of progress.
Result<DirectoryTotals> list_with_progress(const std::filesystem::path& store, Console& console,
                                           const std::function<void(BlockRecord)>& visit);

// What gc and rm show while they work.
RemovalProgress removal_progress(Progress& progress);

// Seconds since the Unix epoch.
double now();

}  // namespace kvkeep::cli
