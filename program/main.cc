// kvkeep: the command line program. Each verb has a file of its own.

#include <csignal>
#include <cstdio>

#include "cli/command_line.h"
#include "cli/console.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // A closed pipe is seen where something is printed.
  kvkeep::cli::Console console(stdout, stderr);
  return console.finish(kvkeep::cli::run_program(argc, argv, console));
}
