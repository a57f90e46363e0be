// Progress shows how far long work has come, from its second second on, on a terminal only.
//
// Threads: one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "cli/console.h"

namespace kvkeep::cli {

class Progress {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // `what` begins the line: "verify". `now` is replaced by tests.
  Progress(Console& console, std::string what,
           std::function<Time()> now = std::chrono::steady_clock::now)
      : console_(console), what_(std::move(what)), now_(std::move(now)), started_(now_()) {}
  ~Progress() { console_.show_progress(""); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `of` 0: nobody knows how much there is.
  void update(uint64_t done, uint64_t of, const std::string& detail);

 private:
  Console& console_;
  const std::string what_;
  const std::function<Time()> now_;
  const Time started_;
  Time shown_{};
};

// "verify  [#####…     ]  42 %  812 blocks".
std::string progress_line(const std::string& what, uint64_t done, uint64_t of,
                          const std::string& detail);

}  // namespace kvkeep::cli
