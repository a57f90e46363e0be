// ServerApi: the calls that kvkeep makes to llama-server for itself.
//
// Each call has a connection of its own: a connection kept open would occupy one of the server's
// threads.
//
// Threads: the io thread.
// Errors:  kUnavailable (no connection, no answer in time), kFailedPrecondition (the server
//          refused; its message), kDataLoss (an answer that makes no sense).
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "daemon/http/http.h"
#include "daemon/http/server_address.h"
#include "kvkeep/status.h"

namespace kvkeep::daemon {

// What the server says of itself.
struct ServerProps {
  uint32_t slots = 0;
  uint64_t slot_tokens = 0;  // Context size of one slot.
  std::string build;
  std::string model_path;
  std::string model_alias;
};

struct SlotAction {
  uint64_t tokens = 0;  // Saved or restored.
  uint64_t bytes = 0;
  double milliseconds = 0;  // As the server measured it.
};

class ServerApi {
 public:
  ServerApi(net::any_io_executor io, ServerAddress address);

  const ServerAddress& address() const { return address_; }

  // 200 of /health: the model is loaded.
  Async<bool> is_healthy();
  Async<Result<ServerProps>> props();
  // Adapters and their scales as the server holds them, as JSON text; "[]" where it knows no such
  // question.
  Async<std::string> adapters();

  // The prompt that the server would make of a chat: `body` as for /apply-template.
  Async<Result<std::string>> apply_template(std::string body);
  Async<Result<std::vector<uint32_t>>> tokenize(std::string text);

  // `filename` in the server's slot directory. They wait for the slot's running work.
  Async<Result<SlotAction>> save_slot(uint32_t slot, std::string filename);
  Async<Result<SlotAction>> restore_slot(uint32_t slot, std::string filename);
  Async<Status> erase_slot(uint32_t slot);

  // Computes these tokens in a slot and generates nothing.
  Async<Status> prefill(uint32_t slot, std::vector<uint32_t> tokens);

 private:
  using Json = nlohmann::json;

  Async<Result<Json>> call(http::verb verb, std::string path, std::string body,
                           std::chrono::seconds limit);
  Async<Result<SlotAction>> slot_action(uint32_t slot, std::string action, std::string filename);

  const net::any_io_executor io_;
  const ServerAddress address_;
};

// A connection to the server. kUnavailable with the address and the reason.
Async<Result<Socket>> connect_to(const ServerAddress& address);

}  // namespace kvkeep::daemon
