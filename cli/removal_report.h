// What gc and rm print at their end.
//
// Threads: one thread.
#pragma once

#include "cli/console.h"
#include "cli/verb.h"
#include "kvkeep/directory.h"

namespace kvkeep::cli {

// "removed 812 blocks, 3.10GB", or one JSON object. Returns the exit status: 3 if something could
// not be removed.
int print_removal(const RemovalReport& report, std::string_view verb, const Arguments& arguments,
                  Console& console);

}  // namespace kvkeep::cli
