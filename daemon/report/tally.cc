#include "daemon/report/tally.h"

namespace kvkeep::daemon {
namespace {

void add_metric(std::string& out, const std::string& name, const char* help, double value) {
  out += "# HELP " + name + " " + help + "\n# TYPE " + name + " counter\n";
  out += name + " " + nlohmann::json(value).dump() + "\n";
}

}  // namespace

double Tally::hit_rate() const {
  if (prompt_tokens == 0) return 0;
  return static_cast<double>(restored_tokens + live_tokens) / static_cast<double>(prompt_tokens);
}

nlohmann::ordered_json Tally::to_json() const {
  nlohmann::ordered_json out;
#define KVKEEP_X(name, help) out[#name] = name;
  KVKEEP_LLAMA_COUNTERS(KVKEEP_X)
#undef KVKEEP_X
  out["seconds_saved"] = seconds_saved;
  out["restore_seconds"] = restore_seconds;
  out["hit_rate"] = hit_rate();
  out["reasons"] = reasons;
  return out;
}

std::string Tally::to_prometheus() const {
  std::string out;
#define KVKEEP_X(name, help) \
  add_metric(out, "kvkeep_llama_" #name "_total", help, static_cast<double>(name));
  KVKEEP_LLAMA_COUNTERS(KVKEEP_X)
#undef KVKEEP_X
  add_metric(out, "kvkeep_llama_seconds_saved_total", "seconds of prefill saved, less restores",
             seconds_saved);
  add_metric(out, "kvkeep_llama_restore_seconds_total", "seconds spent in restores",
             restore_seconds);
  const std::string name = "kvkeep_llama_reason_total";
  out += "# HELP " + name + " completions not served whole from the store, by reason\n# TYPE " +
         name + " counter\n";
  for (const auto& [reason, count] : reasons) {
    out += name + "{reason=\"" + reason + "\"} " + std::to_string(count) + "\n";
  }
  return out;
}

}  // namespace kvkeep::daemon
