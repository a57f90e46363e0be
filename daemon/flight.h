// Flight: one completion request between its arrival and the storing of what it left in its slot.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "daemon/request_report.h"
#include "daemon/requests/completion_request.h"
#include "daemon/slots/prompt_store.h"
#include "daemon/slots/slot_gate.h"

namespace kvkeep::daemon {

struct Flight {
  CompletionRequest request;
  bool may_store = true;
  std::shared_ptr<PromptStore> store;  // Null: passed through.
  std::vector<uint32_t> tokens;        // Of the prompt.
  std::vector<uint32_t> held;          // What the slot is believed to hold before the request.
  uint64_t stored_tokens = 0;          // Of the prompt, that the store has.
  std::optional<SlotReservation> slot;
  RequestReport report;
};

}  // namespace kvkeep::daemon
