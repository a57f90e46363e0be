// FakeServer: what kvkeep asks of a llama-server, for tests, in the process and on the thread of
// who asks. Its tokens are the bytes of a text, and the state of a token follows from the tokens up
// to it, so that a slot file with a wrong byte is seen.
//
// Only tests use it.
//
// Threads: the io thread. Must outlive the running io context's coroutines, as they use it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "connectors/llama/slot_layout.h"
#include "daemon/http/client_watch.h"
#include "daemon/http/http.h"
#include "daemon/http/server_address.h"
#include "kvkeep/status.h"

namespace kvkeep::daemon {

// What the server writes to a connection, byte for byte, in place of its own answer.
struct Script {
  // Among `pieces`: waits for FakeServer::resume().
  static constexpr const char* kHold = "(hold)";

  std::vector<std::string> pieces{};
  bool before_body = false;  // As soon as the head of the request is there; never reads its body.
};

class FakeServer {
 public:
  struct Request {
    std::string method, target;
    std::map<std::string, std::string> headers{};  // Names in lower case.
    std::string body{};
  };
  struct Slot {
    std::vector<uint32_t> tokens{};
    bool is_busy = false;
  };

  FakeServer(net::io_context& io, std::filesystem::path slot_dir, uint32_t slots);
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;
  ~FakeServer();

  ServerAddress address() const;

  // To be changed between requests.
  std::map<std::string, Script> scripts{};  // By path without query.
  std::string build = "b1";
  std::string model_path{};
  llama::SlotLayout layout;  // Of its slot files.
  uint64_t slot_tokens = 1024;
  uint64_t predicted = 4;  // Tokens that it generates.
  double ms_per_token = 50;
  bool holds_completions = false;  // Each waits for resume() or for its client to leave.
  bool refuses_restores = false;
  bool forgets_restores = false;    // Takes the file, and computes everything all the same.
  bool messages_have_more = false;  // Its /v1/messages begin with a token of their own.

  // What was seen.
  std::vector<Request> requests{};
  uint32_t overlaps = 0;     // Work in a slot that was busy.
  uint32_t wrong_files = 0;  // Restored, with a byte that is not the tokens' own.
  uint32_t left = 0;         // Completions whose client left before they were answered.
  size_t holding() const { return holding_.size(); }
  const std::vector<Slot>& slots() const { return slots_; }
  // Requests whose path, without query, is this.
  std::vector<Request> requests_to(const std::string& path) const;

  // Lets everything that is held go on.
  void resume();

  // The only slot file that can be of these tokens.
  std::vector<std::byte> slot_file(std::span<const uint32_t> tokens, uint32_t slot) const;

 private:
  using Json = nlohmann::json;
  struct Acceptor;

  Async<void> accept();
  Async<void> serve(Socket socket);
  Async<void> hold(ClientWatch* watch);
  // The answer, and what it leaves in the slot.
  Json generate(const Json& body, std::vector<uint32_t> tokens, Slot& slot) const;
  Async<void> play(Socket& socket, Script script);
  Async<void> answer(Socket& socket, Request request);
  Async<void> complete(Socket& socket, Request request);
  Async<void> act_on_slot(Socket& socket, Request request);
  std::optional<Json> own_answer(const std::string& path, const Json& body) const;
  std::pair<unsigned, Json> slot_answer(const Request& request);
  Async<void> reply(Socket& socket, unsigned status, Json body);
  uint32_t choose_slot(const Json& body, std::span<const uint32_t> prompt) const;
  std::vector<uint32_t> prompt_of(const Request& request, const Json& body) const;
  Status save(const std::filesystem::path& file, uint32_t slot);
  Status restore(const std::filesystem::path& file, uint32_t slot);

  net::io_context& io_;
  const std::unique_ptr<Acceptor> acceptor_;
  const std::filesystem::path slot_dir_;
  std::vector<Slot> slots_;
  std::vector<net::steady_timer*> holding_;
};

// A token per byte.
std::vector<uint32_t> byte_tokens(const std::string& text);

}  // namespace kvkeep::daemon
