// One request on its way to the server and its answer on the way back, both streamed.
//
// Bodies arrive byte for byte as they were sent, apart from the transfer coding. Whatever comes
// from the server is written to the client before more is read, so tokens arrive one by one.
//
// Threads: the io thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/http/client_watch.h"
#include "daemon/http/http.h"
#include "daemon/http/server_address.h"
#include "kvkeep/status.h"

namespace kvkeep::daemon {

// A client that takes nothing, or sends nothing, for so long is as good as gone: llama-server's own
// limit.
constexpr std::chrono::milliseconds kPatience = std::chrono::minutes(10);

struct ClientConnection {
  explicit ClientConnection(Socket connected, std::chrono::milliseconds patience_ = kPatience)
      : stream(std::move(connected)), patience(patience_) {}
  // For the reads, or the writes, that come next.
  void begin_to_wait() { stream.expires_after(patience); }

  Stream stream;
  beast::flat_buffer buffer{};
  const std::chrono::milliseconds patience;
};

using RequestParser = http::request_parser<http::buffer_body>;
using RequestHead = http::request_header<>;
using Headers = std::vector<std::pair<std::string, std::string>>;

// The next piece of the request's body, at most 64 KiB; empty at its end. kUnavailable: the client
// has left. Answers "Expect: 100-continue" before the first.
Async<Result<std::string>> read_piece(ClientConnection& client, RequestParser& parser);

struct ExchangeResult {
  enum class End { kDone, kClientLeft, kServerFailed };
  End end = End::kDone;
  unsigned status = 0;      // HTTP status of the server; 0: none came.
  std::string tail{};       // The last bytes of the answer's body, at most kTailBytes.
  bool keep_alive = false;  // Another request may follow on the client's connection.
  std::string error{};      // kServerFailed: what happened.
};

class Exchange {
 public:
  static constexpr size_t kTailBytes = 16 << 10;

  explicit Exchange(const ServerAddress& address) : address_(address) {}

  // Sends the head and the whole body, unless the client leaves first.
  Async<Status> send(const RequestHead& head, std::string body, ClientWatch& watch);
  // Sends the head, the beginning of the body, and then what is left of it, as it comes.
  Async<Status> send_on(const RequestHead& head, std::string beginning, ClientConnection& client,
                        RequestParser& rest);
  // Whether they failed because of the client, not of the server.
  bool client_left() const { return client_left_; }
  // Passes the answer on, with these headers added. Where the server fails before it has answered
  // at all, nothing is sent to the client.
  Async<ExchangeResult> answer(ClientConnection& client, const RequestHead& head,
                               const Headers& added, ClientWatch& watch);

 private:
  Async<Status> connect();
  Async<ErrorCode> pass_body(ClientConnection& client,
                             http::response_parser<http::buffer_body>& from,
                             http::response<http::buffer_body>& out,
                             http::response_serializer<http::buffer_body>& to,
                             ExchangeResult& result);

  const ServerAddress& address_;
  std::optional<Socket> server_;
  beast::flat_buffer buffer_;
  bool client_left_ = false;
};

// An answer of our own. True if another request may follow.
struct OwnAnswer {
  http::status status = http::status::ok;
  std::string content_type = "application/json";
  std::string body{};
  Headers headers{};
};
Async<bool> send_own(ClientConnection& client, const RequestHead& head, OwnAnswer answer);

// {"error": {"code", "message", "type"}}, as llama-server says it.
OwnAnswer error_answer(http::status status, const std::string& message);

}  // namespace kvkeep::daemon
