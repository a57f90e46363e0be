// From the words of a command line to a verb and its arguments.
//
// Threads: one thread.
#pragma once

#include "cli/console.h"

namespace kvkeep::cli {

// Parses, runs the verb, and returns the exit status.
int run_program(int argc, const char* const* argv, Console& console);

}  // namespace kvkeep::cli
