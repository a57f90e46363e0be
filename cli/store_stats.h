// What stats counts, and its three forms of output.
//
// Threads: plain values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "kvkeep/directory.h"

namespace kvkeep::cli {

struct Group {
  uint64_t blocks = 0;
  uint64_t tokens = 0;
  uint64_t file_bytes = 0;
  uint64_t allocated_bytes = 0;
  double last_access = 0;
  std::string build{};  // Of an identity.

  void add(const BlockRecord& block);
};

struct Span {
  double oldest = 0;
  double newest = 0;
};

struct StoreStats {
  std::filesystem::path dir;
  DirectoryTotals totals{};
  std::map<std::string, Group> models{};      // Blocks whose header could be read.
  std::map<std::string, Group> identities{};  // By digest.
  std::map<std::string, Group> states{};
  std::optional<Span> created{};
  std::optional<Span> used{};

  void add(const BlockRecord& block);
};

std::string stats_json(const StoreStats& stats);
std::string stats_text(const StoreStats& stats, double now);
// The text format of Prometheus. What there is to see of a directory, no counters of a process.
std::string stats_prometheus(const StoreStats& stats);

}  // namespace kvkeep::cli
