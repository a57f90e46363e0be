#include "daemon/session.h"

#include <optional>

#include "daemon/background.h"
#include "daemon/completion.h"
#include "daemon/http/api_key.h"
#include "daemon/http/exchange.h"
#include "daemon/pages.h"

namespace kvkeep::daemon {
namespace {

// Bodies beyond this are passed through as they come.
constexpr size_t kMaxBody = 64 << 20;
constexpr size_t kMaxOwnBody = 64 << 20;
constexpr uint32_t kMaxHead = 256 << 10;

std::string text_of(beast::string_view view) { return std::string(view.data(), view.size()); }

// The path that llama-server sees: without its prefix and without the query.
std::string path_of(const Door& door, const RequestHead& head) {
  std::string path = text_of(head.target());
  path = path.substr(0, path.find('?'));
  const std::string& prefix = door.api.address().prefix;
  if (!prefix.empty() && path.rfind(prefix + "/", 0) == 0) path.erase(0, prefix.size());
  return path;
}

// The body up to `most` bytes; is_done() of the parser says whether that is all of it.
Async<Result<std::string>> read_body(ClientConnection& client, RequestParser& parser, size_t most) {
  std::string body;
  while (!parser.is_done() && body.size() < most) {
    Result<std::string> piece = co_await read_piece(client, parser);
    if (!piece.ok()) co_return piece.status();
    body += *piece;
  }
  co_return body;
}

// The slot that a request to /slots/N changes.
std::optional<uint32_t> changed_slot(const RequestHead& head, const std::string& path) {
  constexpr std::string_view slots = "/slots/";
  if (head.method() != http::verb::post || path.rfind(slots, 0) != 0) return std::nullopt;
  uint32_t slot = 0;
  for (size_t i = slots.size(); i < path.size(); ++i) {
    if (path[i] < '0' || path[i] > '9' || slot > 100'000) return std::nullopt;
    slot = slot * 10 + static_cast<uint32_t>(path[i] - '0');
  }
  return slot;
}

// What a request that is only passed through may change behind our back.
void note_side_effects(Door& door, const RequestHead& head, const std::string& path) {
  const std::optional<uint32_t> slot = changed_slot(head, path);
  if (slot.has_value() && door.gate != nullptr) door.gate->forget_tokens(*slot);
  if (head.method() == http::verb::post && path == "/lora-adapters" && door.is_ready()) {
    door.stop_caching("adapters", "adapters were changed while serving (start kvkeep again)");
  }
}

Async<bool> pass_through(Door& door, ClientConnection& client, RequestParser& parser,
                         std::string body, Headers headers) {
  const RequestHead head = parser.get().base();
  Exchange exchange(door.api.address());
  const Status sent = co_await exchange.send_on(head, std::move(body), client, parser);
  if (exchange.client_left()) {
    ++door.tally.client_left;
    co_return false;
  }
  ExchangeResult result;
  if (sent.ok()) {
    ClientWatch watch(client.stream.socket());
    result = co_await exchange.answer(client, head, headers, watch);
    if (watch.is_gone()) co_return false;
  } else {
    result.end = ExchangeResult::End::kServerFailed;
    result.error = sent.message();
  }
  if (result.end == ExchangeResult::End::kServerFailed) {
    // Who asks whether the model is loaded yet has lost nothing.
    const bool loading = result.status == 0 && door.uncached.reason == "loading";
    if (!loading) ++door.tally.server_failed;
    if (result.status != 0) co_return false;
    OwnAnswer sorry = server_is_away(door, result.error);
    co_await send_own(client, head, std::move(sorry));
    co_return false;  // What is left of the body was not read.
  }
  // A server that answered early has left some of the body unread; that is no next request.
  co_return result.keep_alive&& parser.is_done();
}

Async<bool> serve_own_page(Door& door, ClientConnection& client, RequestParser& parser,
                           std::string path) {
  const RequestHead head = parser.get().base();
  OwnAnswer answer;
  if (!has_api_key(head, door.api_keys)) {
    answer = error_answer(http::status::unauthorized, "Invalid API Key");
    answer.headers = {{"www-authenticate", "Basic realm=\"kvkeep: the API key as password\""}};
  } else {
    Result<std::string> body = co_await read_body(client, parser, kMaxOwnBody);
    if (!body.ok()) co_return false;
    if (parser.is_done()) {
      std::string method = text_of(head.method_string());
      answer = co_await own_page(door, std::move(path), std::move(method), *std::move(body));
    } else {
      answer = error_answer(http::status::payload_too_large, "the body is larger than 64MB");
    }
  }
  const bool again = co_await send_own(client, head, std::move(answer));
  co_return again&& parser.is_done();
}

Async<bool> serve_request(Door& door, ClientConnection& client, RequestParser& parser) {
  const RequestHead head = parser.get().base();
  std::string path = path_of(door, head);
  if (is_own_page(path)) co_return co_await serve_own_page(door, client, parser, std::move(path));
  ++door.tally.requests;
  const std::string method = text_of(head.method_string());
  const Route route = route_of(method, path);
  if (route == Route::kNone || !has_api_key(head, door.api_keys)) {
    note_side_effects(door, head, path);
    co_return co_await pass_through(door, client, parser, "", {});
  }
  ++door.tally.completions;
  Result<std::string> body = co_await read_body(client, parser, kMaxBody);
  if (!body.ok()) co_return false;
  if (!parser.is_done()) {
    ++door.tally.completions_uncached;
    ++door.tally.reasons["too_large"];
    const Headers headers{{"x-kvkeep-cached-tokens", "0"}, {"x-kvkeep-reason", "too_large"}};
    co_return co_await pass_through(door, client, parser, *std::move(body), headers);
  }
  co_return co_await serve_completion(door, client, head, *std::move(body), route);
}

// What a request that cannot be understood is answered with.
Async<void> refuse(ClientConnection& client, const ErrorCode& error) {
  const bool too_long = error == http::error::header_limit;
  OwnAnswer answer = error_answer(
      too_long ? http::status::request_header_fields_too_large : http::status::bad_request,
      "the request cannot be read: " + error.message());
  RequestHead head;
  head.version(11);
  head.set(http::field::connection, "close");
  co_await send_own(client, head, std::move(answer));
}

}  // namespace

Async<void> serve_client(Door& door, Socket socket) {
  ClientConnection client(std::move(socket), door.client_patience);
  for (bool again = true; again;) {
    RequestParser parser;
    parser.header_limit(kMaxHead);
    parser.body_limit(UINT64_MAX);
    ErrorCode error;
    client.begin_to_wait();
    co_await http::async_read_header(client.stream, client.buffer, parser, into(error));
    if (error) {
      const bool left = error == http::error::end_of_stream ||
                        error == http::error::partial_message || error == beast::error::timeout ||
                        error.category() == boost::system::system_category() ||
                        error == net::error::eof;
      if (!left) co_await refuse(client, error);
      break;
    }
    const Running running(door.requests_running);
    again = co_await serve_request(door, client, parser);
  }
  ErrorCode ignored;
  client.stream.socket().shutdown(Socket::shutdown_send, ignored);
}

}  // namespace kvkeep::daemon
