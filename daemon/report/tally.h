// What kvkeep did for a server since it started, for people and for Prometheus.
//
// Threads: the io thread.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace kvkeep::daemon {

// X(name, help)
#define KVKEEP_LLAMA_COUNTERS(X)                                                     \
  X(requests, "requests of any kind")                                                \
  X(completions, "completion requests")                                              \
  X(completions_restored, "of these, with tokens restored from the store")           \
  X(completions_live, "of these, whose slot still held tokens")                      \
  X(completions_uncached, "of these, passed through without looking at the store")   \
  X(client_left, "requests whose client left before the end")                        \
  X(server_failed, "requests that the server did not answer to the end")             \
  X(prompt_tokens, "tokens of the prompts that were looked up")                      \
  X(restored_tokens, "of these, restored from the store")                            \
  X(live_tokens, "of these, still in a slot")                                        \
  X(restores, "slots restored")                                                      \
  X(restore_failures, "slots that the server did not restore")                       \
  X(restores_unused, "slots restored whose tokens the server computed all the same") \
  X(restored_bytes, "bytes of slot files restored")                                  \
  X(restores_not_worth, "restores left out because computing is faster")             \
  X(saves, "slots saved")                                                            \
  X(save_failures, "slots that could not be saved or read")                          \
  X(saves_dropped, "slots not saved because earlier ones were still being stored")   \
  X(saves_unneeded, "slots not saved because all their blocks were there")           \
  X(blocks_stored, "blocks stored")                                                  \
  X(template_differs, "prompts whose tokens in the slot were not those foreseen")

struct Tally {
#define KVKEEP_X(name, help) uint64_t name = 0;
  KVKEEP_LLAMA_COUNTERS(KVKEEP_X)
#undef KVKEEP_X
  double seconds_saved = 0;    // Of prefill, less what the restores took.
  double restore_seconds = 0;  // From the first byte read to the server's answer.
  // Why completions, or the rest of their prompts, did not come from the store.
  std::map<std::string, uint64_t> reasons{};

  // Of the tokens looked up, those that were not computed; 0 if there are none.
  double hit_rate() const;
  nlohmann::ordered_json to_json() const;
  // Text exposition: counters kvkeep_llama_…_total, reasons as a label.
  std::string to_prometheus() const;
};

}  // namespace kvkeep::daemon
