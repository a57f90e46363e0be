// kvkeep_bench [DIRECTORY] [--large]: what kvkeep costs, each line beside a baseline in the same
// run.
//
// DIRECTORY: where the drive to be measured is; a directory of its own is made there and removed.
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>

#include "harness.h"

int main(int argc, char** argv) {
  std::string where = std::filesystem::temp_directory_path().string();
  bool large = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--large") == 0) {
      large = true;
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
  kvkeep::bench::bench_keys();
  kvkeep::bench::bench_memory(directory);
  kvkeep::bench::bench_disk(directory);
  kvkeep::bench::bench_prefix(directory);
  kvkeep::bench::bench_open(directory, large);
  std::filesystem::remove_all(directory);
  return 0;
}
