#include <cstdio>

#include "cli/store_stats.h"

namespace kvkeep::cli {
namespace {

// A label's value: backslash, quote and line feed are escaped.
std::string label(const std::string& name, const std::string& value) {
  std::string out = name + "=\"";
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? "\\n" : std::string(1, c);
  }
  return out + "\"";
}

class Exposition {
 public:
  void metric(const std::string& name, const std::string& help) {
    name_ = "kvkeep_store_" + name;
    text_ += "# HELP " + name_ + " " + help + "\n# TYPE " + name_ + " gauge\n";
  }
  void sample(uint64_t value, const std::string& labels = {}) {
    text_ +=
        name_ + (labels.empty() ? "" : "{" + labels + "}") + " " + std::to_string(value) + "\n";
  }
  void time(double value, const std::string& labels) {
    char number[40];
    std::snprintf(number, sizeof number, "%.3f", value);
    text_ += name_ + "{" + labels + "} " + number + "\n";
  }
  std::string text() && { return std::move(text_); }

 private:
  std::string name_;
  std::string text_;
};

void add_models(const StoreStats& stats, Exposition& out) {
  out.metric("model_blocks", "block files by model");
  for (const auto& [model, group] : stats.models) out.sample(group.blocks, label("model", model));
  out.metric("model_bytes", "lengths of block files by model");
  for (const auto& [model, group] : stats.models) {
    out.sample(group.file_bytes, label("model", model));
  }
}

void add_times(const StoreStats& stats, Exposition& out) {
  if (!stats.used) return;
  out.metric("last_use_seconds", "time of last use since the Unix epoch");
  out.time(stats.used->oldest, label("of", "oldest"));
  out.time(stats.used->newest, label("of", "newest"));
}

}  // namespace

std::string stats_prometheus(const StoreStats& stats) {
  const DirectoryTotals& t = stats.totals;
  Exposition out;
  out.metric("blocks", "block files by state");
  for (const auto& [state, group] : stats.states) out.sample(group.blocks, label("state", state));
  out.metric("bytes", "bytes on the disk by what they are for");
  out.sample(t.block_bytes, label("kind", "blocks"));
  out.sample(t.overhead_bytes, label("kind", "overhead"));
  out.sample(t.quarantine_bytes, label("kind", "quarantine"));
  out.sample(t.temp_bytes, label("kind", "temporary"));
  if (t.max_size_bytes) {
    out.metric("configured_max_size_bytes", "limit that the store's owner was given");
    out.sample(*t.max_size_bytes);
  }
  out.metric("quarantine_files", "damaged files kept aside");
  out.sample(t.quarantine_files);
  out.metric("temporary_files", "files being written or left behind");
  out.sample(t.temp_files);
  out.metric("foreign_files", "files that are not kvkeep's");
  out.sample(t.foreign_files);
  out.metric("free_bytes", "free bytes of the file system");
  out.sample(t.free_bytes);
  out.metric("capacity_bytes", "bytes of the file system");
  out.sample(t.capacity_bytes);
  add_models(stats, out);
  add_times(stats, out);
  return std::move(out).text();
}

}  // namespace kvkeep::cli
