// Compares two ways of doing one thing: both run in turn, again and again, in one process, so that
// what disturbs the machine disturbs both. Medians, and their ratio.
//
// Threads: one.
#pragma once

#include <functional>
#include <string>

namespace kvkeep::bench {

struct Contest {
  std::string name;      // "save call, 4 MiB"
  std::string baseline;  // What it is compared with: "copy + digest".
  std::function<void()> ours;
  std::function<void()> theirs;
  // Run before each of ours, not measured.
  std::function<void()> prepare = [] {};
  double bytes = 0;  // Moved by one run; 0 where a rate makes no sense.
  int runs_per_sample = 1;
  double tokens = 0;  // Of one run, where that is the rate to show.
};

// Runs it for about `seconds` and prints one line.
void compare(const Contest& contest, double seconds = 1.5);

// One timed run, for what takes long. Prints one line; `count` things were done.
void measure(const std::string& name, double count, const std::function<void()>& run,
             const std::string& baseline, const std::function<void()>& theirs);

// Ends the program with a message if `right` is false: a wrong answer has no speed.
void require(bool right, const std::string& what);

// The parts of the benchmark.
void bench_keys();
void bench_memory(const std::string& directory);
void bench_disk(const std::string& directory);
void bench_open(const std::string& directory, bool large);
void bench_prefix(const std::string& directory);

}  // namespace kvkeep::bench
