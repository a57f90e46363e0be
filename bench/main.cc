// kvkeep_bench [DIRECTORY] [--large] [--only keys|memory|disk|prefix|open]: what kvkeep costs, each
// line beside a baseline in the same run.
//
// DIRECTORY: where the drive to be measured is; a directory of its own is made there and removed.
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>

#include "harness.h"

int main(int argc, char** argv) {
  std::string where = std::filesystem::temp_directory_path().string();
  bool large = false;
  std::string only;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--large") == 0) {
      large = true;
    } else if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
      only = argv[++i];
    } else {
      where = argv[i];
    }
  }
  std::string directory = where + "/kvkeep-bench-XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) {
    std::perror(directory.c_str());
    return 1;
  }
  std::printf("medians of runs that took turns; ratio: kvkeep / baseline\n");
  const std::pair<const char*, std::function<void()>> parts[] = {
      {"keys", [] { kvkeep::bench::bench_keys(); }},
      {"memory", [&] { kvkeep::bench::bench_memory(directory); }},
      {"disk", [&] { kvkeep::bench::bench_disk(directory); }},
      {"prefix", [&] { kvkeep::bench::bench_prefix(directory); }},
      {"open", [&] { kvkeep::bench::bench_open(directory, large); }},
  };
  for (const auto& [name, run] : parts) {
    if (only.empty() || only == name) run();
  }
  std::filesystem::remove_all(directory);
  return 0;
}
