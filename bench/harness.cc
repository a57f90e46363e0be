#include "harness.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace kvkeep::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double time_of(const std::function<void()>& run, int runs) {
  const auto start = Clock::now();
  for (int i = 0; i < runs; ++i) run();
  return seconds_since(start) / runs;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string shown(double seconds) {
  char text[32];
  if (seconds < 1e-6) {
    std::snprintf(text, sizeof text, "%.0f ns", seconds * 1e9);
  } else if (seconds < 1e-3) {
    std::snprintf(text, sizeof text, "%.1f us", seconds * 1e6);
  } else if (seconds < 1) {
    std::snprintf(text, sizeof text, "%.2f ms", seconds * 1e3);
  } else {
    std::snprintf(text, sizeof text, "%.2f s", seconds);
  }
  return text;
}

void print(const std::string& name, double ours, const std::string& baseline, double theirs,
           const std::string& more) {
  std::printf("%-38s %10s   %-34s %10s   ratio %5.2f   %s\n", name.c_str(), shown(ours).c_str(),
              baseline.c_str(), shown(theirs).c_str(), ours / theirs, more.c_str());
  std::fflush(stdout);
}

}  // namespace

void compare(const Contest& contest, double seconds) {
  std::vector<double> ours, theirs;
  const auto start = Clock::now();
  while (ours.size() < 5 || seconds_since(start) < seconds) {
    contest.prepare();
    ours.push_back(time_of(contest.ours, contest.runs_per_sample));
    theirs.push_back(time_of(contest.theirs, contest.runs_per_sample));
  }
  char more[64] = "";
  const double median_ours = median(ours);
  if (contest.bytes > 0) {
    std::snprintf(more, sizeof more, "%.2f GB/s, %zu runs", contest.bytes / median_ours / 1e9,
                  ours.size());
  } else if (contest.tokens > 0) {
    std::snprintf(more, sizeof more, "%.1f M tokens/s, %zu runs",
                  contest.tokens / median_ours / 1e6, ours.size());
  } else {
    std::snprintf(more, sizeof more, "%zu runs", ours.size());
  }
  print(contest.name, median_ours, contest.baseline, median(theirs), more);
}

void measure(const std::string& name, double count, const std::function<void()>& run,
             const std::string& baseline, const std::function<void()>& theirs) {
  const double other = time_of(theirs, 1);
  const double own = time_of(run, 1);
  char more[64];
  std::snprintf(more, sizeof more, "%.1f us each", own / count * 1e6);
  print(name, own, baseline, other, more);
}

void require(bool right, const std::string& what) {
  if (right) return;
  std::fprintf(stderr, "bench: %s: wrong answer\n", what.c_str());
  std::exit(1);
}

}  // namespace kvkeep::bench
