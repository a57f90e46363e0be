// Door: everything that the requests of one server share.
//
// Threads: the io thread, but for the work that is handed to the pools.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/http/exchange.h"
#include "daemon/http/server_api.h"
#include "daemon/report/log.h"
#include "daemon/report/tally.h"
#include "daemon/requests/forecast.h"
#include "daemon/slots/prompt_store.h"
#include "daemon/slots/restore_economics.h"
#include "daemon/slots/slot_directory.h"
#include "daemon/slots/slot_gate.h"

namespace kvkeep::daemon {

// Why nothing is cached just now. Empty name: the store is in use.
struct Uncached {
  std::string reason;  // One word: "loading", "digesting", "router", ….
  std::string text;    // One sentence for a person.
};

struct Door {
  Door(net::io_context& io_, ServerAddress address, Log& log_, StoreSettings settings_)
      : io(io_),
        api(io_.get_executor(), std::move(address)),
        log(log_),
        settings(std::move(settings_)) {
    settling.emplace(io_, net::steady_timer::time_point::max());
  }

  net::io_context& io;
  ServerApi api;
  Log& log;
  StoreSettings settings;
  const std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  std::string public_url{};             // Where clients reach kvkeep.
  std::vector<std::string> api_keys{};  // That clients must have one of; empty: none is needed.
  bool cache_prompt = true;             // What the server does where a request does not say.
  std::chrono::milliseconds client_patience = kPatience;
  bool context_shift = false;  // The server may move the tokens of a full slot.

  // Whether it is known if prompts are kept. Requests wait for that for a moment, so that the first
  // one after a restart finds what is stored.
  bool is_settled = false;
  std::optional<net::steady_timer> settling{};

  Uncached uncached{"loading", "the server is still loading its model"};
  std::atomic<int> digested_percent{0};  // Of the model file, while that is read.
  ServerProps props{};
  std::unique_ptr<SlotGate> gate{};      // Once the number of slots is known.
  std::shared_ptr<PromptStore> store{};  // Null unless `uncached` is empty.
  std::unique_ptr<SlotDirectory> directory{};
  bool may_change = false;           // Somebody else may put another server in its place.
  uint32_t failed_restores = 0;      // In a row.
  uint32_t unused_restores = 0;      // In a row: the server computed the tokens all the same.
  Forecast messages{}, responses{};  // Of /v1/messages and /v1/responses.

  Tally tally{};
  RestoreEconomics economics{};
  std::FILE* trace = nullptr;
  uint64_t requests_running = 0;
  uint64_t saves_running = 0;

  // Client-facing work does not wait behind what is stored afterwards.
  net::thread_pool restoring{1};
  net::thread_pool keeping{1};

  void settle() {
    is_settled = true;
    if (settling.has_value()) settling->cancel();
  }
  bool is_ready() const { return uncached.reason.empty(); }
  void stop_caching(std::string reason, std::string text) {
    uncached = {std::move(reason), std::move(text)};
    log.warn("serving without a store: " + uncached.text);
  }
};

}  // namespace kvkeep::daemon
