// Child: the server process that kvkeep has started.
//
// It has a process group of its own, so that Ctrl-C reaches kvkeep first, and on Linux it is killed
// when kvkeep is.
//
// Threads: the io thread; spawn() on the main thread, whose end would end the child too.
#pragma once

#include <sys/types.h>

#include <boost/asio/signal_set.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/http/http.h"
#include "kvkeep/status.h"

namespace kvkeep::daemon {

class Child {
 public:
  // Runs `arguments` ([0] looked up in PATH) without the variables named. The status of a program
  // that cannot be run carries its errno.
  static Result<std::unique_ptr<Child>> spawn(net::any_io_executor io,
                                              const std::vector<std::string>& arguments,
                                              const std::vector<std::string>& unset_variables);
  // Kills it if it still runs.
  ~Child();

  pid_t pid() const { return pid_; }
  bool has_ended() const { return status_.has_value(); }
  // As a shell gives it: 128 + N for signal N. REQUIRES: has_ended().
  int exit_status() const { return *status_; }
  // "exit status 3", "signal 9 (Killed)". REQUIRES: has_ended().
  std::string end_text() const;

  void signal(int number);
  Async<void> wait();

 private:
  Child(net::any_io_executor io, pid_t pid);
  void look();

  const pid_t pid_;
  net::signal_set changes_;
  std::optional<int> status_;
};

// The child dies with its parent, where the system can do that. Called between fork and exec.
void die_with_parent(pid_t parent);

}  // namespace kvkeep::daemon
