// What became of one completion: for the tally, the log and the trace.
//
// Threads: the io thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "daemon/door.h"
#include "daemon/http/exchange.h"
#include "daemon/requests/completion_request.h"
#include "daemon/requests/timings.h"

namespace kvkeep::daemon {

struct RequestReport {
  Route route = Route::kNone;
  bool looked_up = false;  // False: passed through.
  uint64_t prompt_tokens = 0;
  uint64_t stored_tokens = 0;    // Of these, that the store has.
  uint64_t live_tokens = 0;      // That the slot held already.
  uint64_t restored_tokens = 0;  // That the slot holds because it was restored.
  uint64_t restored_bytes = 0;   // Of the slot file.
  double restore_seconds = 0;
  double server_restore_seconds = 0;  // The server's own part of it.
  std::optional<uint32_t> slot{};
  // Why it, or what follows the cached tokens, does not come from the store: a reason of
  // kvkeep/reason.h or of docs/llama.md. Empty: nothing is missing.
  std::string reason{};
  std::vector<BlockHash> keys{};  // Of the blocks that were matched.

  uint64_t cached_tokens() const { return std::max(restored_tokens, live_tokens); }
};

// Counts it, logs one line, and writes it to the trace.
void finish_report(Door& door, const RequestReport& report, const ExchangeResult& result,
                   const std::optional<Timings>& timings);

// One sentence for a reason that is not a MissReason.
std::string explain_reason(const std::string& reason);
// The same; for the reason why nothing is cached just now, in the words of what happened.
std::string explain_reason(const Door& door, const std::string& reason);

}  // namespace kvkeep::daemon
