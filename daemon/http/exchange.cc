#include "daemon/http/exchange.h"

#include <array>
#include <boost/asio/write.hpp>
#include <nlohmann/json.hpp>

#include "daemon/http/server_api.h"

namespace kvkeep::daemon {
namespace {

constexpr size_t kPiece = 64 << 10;

// Headers that speak of one connection only (RFC 9110, section 7.6.1).
bool is_hop_by_hop(http::field field) {
  switch (field) {
    case http::field::connection:
    case http::field::keep_alive:
    case http::field::proxy_connection:
    case http::field::te:
    case http::field::trailer:
    case http::field::transfer_encoding:
    case http::field::upgrade:
    case http::field::expect:
      return true;
    default:
      return false;
  }
}

// Without it a body would have no end, whatever "Connection" says of it.
bool frames_body(http::field field) { return field == http::field::content_length; }

void copy_headers(const http::fields& from, http::fields& to) {
  http::token_list named(from[http::field::connection]);
  for (const auto& header : from) {
    const bool of_one_connection =
        is_hop_by_hop(header.name()) || named.exists(header.name_string());
    if (of_one_connection && !frames_body(header.name())) continue;
    to.insert(header.name(), header.name_string(), header.value());
  }
}

bool keeps_alive(const RequestHead& head) {
  http::token_list connection(head[http::field::connection]);
  return head.version() >= 11 ? !connection.exists("close") : connection.exists("keep-alive");
}

void keep_tail(std::string& tail, const char* data, size_t size) {
  tail.append(data, size);
  // Cut rarely: what is cut has to be moved.
  if (tail.size() > 4 * Exchange::kTailBytes) tail.erase(0, tail.size() - Exchange::kTailBytes);
}

// Without the length of its body.
template <class Body>
http::request<Body> head_for_server(const RequestHead& head) {
  http::request<Body> out;
  out.method_string(head.method_string());
  out.target(head.target());
  out.version(11);
  copy_headers(head, out);
  out.erase(http::field::content_length);
  out.set(http::field::connection, "close");
  return out;
}

http::response<http::buffer_body> head_for_client(
    const http::response_parser<http::buffer_body>& from, const RequestHead& request,
    const Headers& added) {
  http::response<http::buffer_body> out;
  out.result(from.get().result_int());
  out.reason(from.get().reason());
  copy_headers(from.get(), out);
  for (const auto& [name, value] : added) out.set(name, value);
  out.version(request.version() >= 11 ? 11 : 10);
  const bool no_length = from.chunked() || (from.need_eof() && !from.is_done());
  out.keep_alive(keeps_alive(request) && (request.version() >= 11 || !no_length));
  if (no_length && request.version() >= 11) out.chunked(true);
  return out;
}

}  // namespace

Async<Result<std::string>> read_piece(ClientConnection& client, RequestParser& parser) {
  ErrorCode error;
  auto& message = parser.get();
  if (beast::iequals(message[http::field::expect], "100-continue")) {
    message.erase(http::field::expect);
    constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    client.begin_to_wait();
    co_await net::async_write(client.stream, net::buffer(go_on), into(error));
  }
  std::string piece;
  while (!error && piece.empty() && !parser.is_done()) {
    piece.resize(kPiece);
    message.body().data = piece.data();
    message.body().size = piece.size();
    client.begin_to_wait();
    co_await http::async_read_some(client.stream, client.buffer, parser, into(error));
    if (error == http::error::need_buffer) error = {};
    piece.resize(kPiece - message.body().size);
  }
  if (error) co_return Status(Code::kUnavailable, "the client: " + error.message());
  co_return piece;
}

Async<Status> Exchange::connect() {
  Result<Socket> connected = co_await connect_to(address_);
  if (!connected.ok()) co_return connected.status();
  server_.emplace(*std::move(connected));
  co_return Status();
}

// In both: a server that answers early stops reading; its answer is still worth having.
Async<Status> Exchange::send(const RequestHead& head, std::string body, ClientWatch& watch) {
  const Status connected = co_await connect();
  if (!connected.ok()) co_return connected;
  const WhileWatching closing(watch, [this] {
    ErrorCode ignored;
    server_->close(ignored);
  });
  auto out = head_for_server<http::string_body>(head);
  if (!body.empty() || head.count(http::field::content_length) > 0) out.content_length(body.size());
  out.body() = std::move(body);
  ErrorCode error;
  co_await http::async_write(*server_, out, into(error));
  client_left_ = watch.is_gone();
  co_return client_left_ ? Status(Code::kUnavailable, "the client has left") : Status();
}

Async<Status> Exchange::send_on(const RequestHead& head, std::string beginning,
                                ClientConnection& client, RequestParser& rest) {
  const Status connected = co_await connect();
  if (!connected.ok()) co_return connected;
  auto out = head_for_server<http::buffer_body>(head);
  bool more = !rest.is_done();
  const uint64_t length = more ? rest.content_length().value_or(0) : beginning.size();
  if (more && !rest.content_length().has_value()) {
    out.chunked(true);
  } else if (length > 0 || head.count(http::field::content_length) > 0) {
    out.content_length(length);
  }
  http::request_serializer<http::buffer_body> to(out);
  ErrorCode error;
  for (std::string piece = std::move(beginning);;) {
    if (!piece.empty() || !more) {
      out.body().data = piece.empty() ? nullptr : piece.data();
      out.body().size = piece.size();
      out.body().more = more;
      co_await http::async_write(*server_, to, into(error));
      if (error == http::error::need_buffer) error = {};
      if (error || !more) break;
    }
    Result<std::string> next = co_await read_piece(client, rest);
    client_left_ = !next.ok();
    if (client_left_) co_return next.status();
    piece = *std::move(next);
    more = !piece.empty() && !rest.is_done();
  }
  co_return Status();
}

Async<ErrorCode> Exchange::pass_body(ClientConnection& client,
                                     http::response_parser<http::buffer_body>& from,
                                     http::response<http::buffer_body>& out,
                                     http::response_serializer<http::buffer_body>& to,
                                     ExchangeResult& result) {
  std::vector<char> piece(kPiece);
  ErrorCode error;
  for (;;) {
    size_t got = 0;
    if (!from.is_done()) {
      from.get().body().data = piece.data();
      from.get().body().size = piece.size();
      co_await http::async_read_some(*server_, buffer_, from, into(error));
      if (error == http::error::need_buffer) error = {};
      if (error) {
        result.end = ExchangeResult::End::kServerFailed;
        result.error = error.message();
        co_return error;
      }
      got = piece.size() - from.get().body().size;
      if (got == 0 && !from.is_done()) continue;
    }
    keep_tail(result.tail, piece.data(), got);
    out.body().data = got > 0 ? piece.data() : nullptr;
    out.body().size = got;
    out.body().more = !from.is_done();
    client.begin_to_wait();
    co_await http::async_write(client.stream, to, into(error));
    if (error == http::error::need_buffer) error = {};
    if (error) {
      result.end = ExchangeResult::End::kClientLeft;
      co_return error;
    }
    if (to.is_done() || from.is_done()) co_return ErrorCode();
  }
}

Async<ExchangeResult> Exchange::answer(ClientConnection& client, const RequestHead& head,
                                       const Headers& added, ClientWatch& watch) {
  ExchangeResult result;
  const WhileWatching watching(watch, [this, &client] {
    ErrorCode ignored;
    server_->close(ignored);
    client.stream.socket().cancel(ignored);  // It may have stopped reading long before.
  });
  http::response_parser<http::buffer_body> from;
  from.body_limit(UINT64_MAX);
  from.header_limit(256 << 10);
  if (head.method() == http::verb::head) from.skip(true);
  ErrorCode error;
  co_await http::async_read_header(*server_, buffer_, from, into(error));
  if (error || watch.is_gone()) {
    result.end =
        watch.is_gone() ? ExchangeResult::End::kClientLeft : ExchangeResult::End::kServerFailed;
    result.error = error.message();
    co_return result;
  }
  result.status = from.get().result_int();

  http::response<http::buffer_body> out = head_for_client(from, head, added);
  http::response_serializer<http::buffer_body> to(out);
  if (from.is_done()) {
    out.body().data = nullptr;
    out.body().more = false;
    if (head.method() == http::verb::head) to.split(true);
  } else {
    out.body().data = nullptr;
    out.body().more = true;
  }
  client.begin_to_wait();
  co_await http::async_write_header(client.stream, to, into(error));
  if (error) {
    result.end = ExchangeResult::End::kClientLeft;
  } else if (head.method() != http::verb::head) {
    error = co_await pass_body(client, from, out, to, result);
  }
  if (watch.is_gone()) result.end = ExchangeResult::End::kClientLeft;
  result.keep_alive = !error && !watch.is_gone() && out.keep_alive();
  if (result.tail.size() > kTailBytes) {
    result.tail.erase(0, result.tail.size() - kTailBytes);
  }
  ErrorCode ignored;
  server_->close(ignored);
  co_return result;
}

Async<bool> send_own(ClientConnection& client, const RequestHead& head, OwnAnswer answer) {
  http::response<http::string_body> out(answer.status, head.version() >= 11 ? 11 : 10);
  out.set(http::field::content_type, answer.content_type);
  out.set(http::field::cache_control, "no-store");
  for (const auto& [name, value] : answer.headers) out.set(name, value);
  const bool keep_alive = keeps_alive(head);
  out.keep_alive(keep_alive);
  out.body() = std::move(answer.body);
  out.prepare_payload();
  ErrorCode error;
  client.begin_to_wait();
  if (head.method() == http::verb::head) {
    http::response_serializer<http::string_body> to(out);
    to.split(true);
    co_await http::async_write_header(client.stream, to, into(error));
  } else {
    co_await http::async_write(client.stream, out, into(error));
  }
  co_return !error && keep_alive;
}

OwnAnswer error_answer(http::status status, const std::string& message) {
  const nlohmann::ordered_json error{
      {"code", static_cast<unsigned>(status)}, {"message", message}, {"type", "server_error"}};
  return {status, "application/json; charset=utf-8",
          nlohmann::ordered_json{{"error", error}}.dump(
              -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)};
}

}  // namespace kvkeep::daemon
