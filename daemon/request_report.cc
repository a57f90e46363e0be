#include "daemon/request_report.h"

#include <array>

#include "daemon/report/words.h"

namespace kvkeep::daemon {
namespace {

struct Explained {
  std::string_view reason;
  std::string_view text;
};
// Every reason of ours. Those of blocks are in kvkeep/reason.h.
constexpr std::array kReasons{
    Explained{"loading", "the server is still loading its model"},
    Explained{"digesting", "the model file is still being read to tell it from others"},
    Explained{"not_json", "the body is not JSON"},
    Explained{"no_prompt", "there is no prompt in it"},
    Explained{"several_prompts", "it asks for several prompts or answers at once"},
    Explained{"mixed_prompt", "its prompt mixes text and tokens"},
    Explained{"images", "it holds images, sound or another content that is not text"},
    Explained{"lora", "it asks for adapters of its own"},
    Explained{"cache_prompt", "it asks for no cache"},
    Explained{"cache_reuse", "it asks for state computed at other positions"},
    Explained{"cache_salt", "its cache_salt is no text"},
    Explained{"template", "the server makes other tokens of it than could be foreseen"},
    Explained{"too_large", "its body is larger than 64MB"},
    Explained{"infill", "only the server knows what prompt it makes"},
    Explained{"tokenize", "the server did not turn it into tokens"},
    Explained{"short", "it is shorter than a block"},
    Explained{"not_worth", "computing is faster than restoring"},
    Explained{"slot_dir_full", "the slot directory has no room for its slot"},
    Explained{"restore_failed", "the server did not restore the slot"},
    Explained{"restore_unused", "the server computed again what was restored"},
    Explained{"router", "the server serves several models"},
    Explained{"old_server", "the server does not tell or save its slots"},
    Explained{"slot_dir", "slot files have no place that kvkeep and the server both reach"},
    Explained{"model_file", "the model's file cannot be read"},
    Explained{"store", "the store cannot be opened"},
    Explained{"server_changed", "another server has taken the place of the first"},
    Explained{"adapters", "adapters were changed while serving"},
};

// Why the rest is computed, unless it is just what is new.
std::string rest_of(const Door& door, const RequestReport& report) {
  const bool is_new = report.reason == "absent" || report.reason == "short";
  const bool mostly_cached = 2 * report.cached_tokens() >= report.prompt_tokens;
  if (report.reason.empty() || (is_new && mostly_cached)) return "";
  return "; the rest: " + report.reason + " (" + explain_reason(door, report.reason) + ")";
}

std::string line_of(const Door& door, const RequestReport& report, double saved) {
  const std::string of = " of " + format_count(report.prompt_tokens) + " tokens ";
  if (!report.looked_up) {
    // What holds for every request was said once.
    if (report.reason == door.uncached.reason) return "not cached: " + report.reason;
    return "not cached: " + report.reason + " (" + explain_reason(door, report.reason) + ")";
  }
  if (report.restored_tokens > 0) {
    std::string line = format_count(report.restored_tokens) + of + "restored in " +
                       format_duration(report.restore_seconds);
    if (saved > 0) line += ", about " + format_duration(saved) + " saved";
    return line + rest_of(door, report);
  }
  if (report.live_tokens > 0) {
    return format_count(report.live_tokens) + of + "were still in slot " +
           std::to_string(report.slot.value_or(0)) + rest_of(door, report);
  }
  return "0" + of + "restored: " + report.reason + " (" + explain_reason(door, report.reason) + ")";
}

// Seconds of prefill that the restored tokens would have taken, less what restoring them took.
double seconds_saved(const Door& door, const RequestReport& report) {
  if (report.restored_tokens <= report.live_tokens) return 0;
  const auto verdict =
      door.economics.judge(report.restored_tokens - report.live_tokens, report.restored_bytes);
  return std::max(0.0, verdict.gain_seconds - report.restore_seconds);
}

void count(Door& door, const RequestReport& report, const ExchangeResult& result, double saved) {
  Tally& tally = door.tally;
  if (!report.looked_up) ++tally.completions_uncached;
  if (!report.reason.empty()) ++tally.reasons[report.reason];
  tally.prompt_tokens += report.prompt_tokens;
  if (report.restored_tokens > 0) {
    ++tally.completions_restored;
    ++tally.restores;
    tally.restored_tokens += report.restored_tokens;
    tally.restored_bytes += report.restored_bytes;
    tally.restore_seconds += report.restore_seconds;
    tally.seconds_saved += saved;
  } else if (report.live_tokens > 0) {
    ++tally.completions_live;
    tally.live_tokens += report.live_tokens;
  }
  if (result.end == ExchangeResult::End::kClientLeft) ++tally.client_left;
  if (result.end == ExchangeResult::End::kServerFailed) ++tally.server_failed;
}

nlohmann::ordered_json details_of(const RequestReport& report, const ExchangeResult& result,
                                  const std::optional<Timings>& timings) {
  nlohmann::ordered_json out{{"status", result.status},
                             {"prompt_tokens", report.prompt_tokens},
                             {"stored_tokens", report.stored_tokens},
                             {"live_tokens", report.live_tokens},
                             {"restored_tokens", report.restored_tokens},
                             {"restored_bytes", report.restored_bytes},
                             {"restore_ms", report.restore_seconds * 1000},
                             {"server_restore_ms", report.server_restore_seconds * 1000},
                             {"reason", report.reason},
                             {"client_left", result.end == ExchangeResult::End::kClientLeft}};
  if (report.slot.has_value()) out["slot"] = *report.slot;
  if (timings.has_value()) {
    out["cache_n"] = timings->cache_n;
    out["prompt_n"] = timings->prompt_n;
    out["prompt_ms"] = timings->prompt_ms;
    out["predicted_n"] = timings->predicted_n;
  }
  return out;
}

void write_trace(Door& door, const RequestReport& report, nlohmann::ordered_json line) {
  if (door.trace == nullptr) return;
  line["time"] = system_clock()->wall();
  std::vector<std::string> keys;
  for (const BlockHash& key : report.keys) keys.push_back(key.to_hex());
  line["keys"] = keys;
  const std::string text = line.dump() + "\n";
  std::fwrite(text.data(), 1, text.size(), door.trace);
  std::fflush(door.trace);
}

}  // namespace

std::string explain_reason(const std::string& reason) {
  for (const Explained& known : kReasons) {
    if (known.reason == reason) return std::string(known.text);
  }
  for (size_t i = 0; i < kMissReasonCount; ++i) {
    const auto miss = static_cast<MissReason>(i);
    if (name_of(miss) == reason) return std::string(explain(miss));
  }
  return "all of it is there";
}

std::string explain_reason(const Door& door, const std::string& reason) {
  if (!reason.empty() && reason == door.uncached.reason) return door.uncached.text;
  return explain_reason(reason);
}

void finish_report(Door& door, const RequestReport& report, const ExchangeResult& result,
                   const std::optional<Timings>& timings) {
  if (timings.has_value()) {
    door.economics.note_prefill(timings->prompt_n, timings->prompt_ms / 1000);
  }
  const double saved = seconds_saved(door, report);
  count(door, report, result, saved);
  const nlohmann::ordered_json details = details_of(report, result, timings);
  door.log.log(LogLevel::kInfo, line_of(door, report, saved), details);
  write_trace(door, report, details);
}

}  // namespace kvkeep::daemon
