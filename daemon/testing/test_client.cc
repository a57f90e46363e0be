#include "daemon/testing/test_client.h"

#include <algorithm>
#include <boost/asio/detached.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>

namespace kvkeep::daemon {
namespace {

constexpr int kMostSteps = 200'000;
constexpr auto kPatience = std::chrono::seconds(20);

}  // namespace

bool run_until(net::io_context& io, const std::function<bool()>& done) {
  for (int step = 0; step < kMostSteps; ++step) {
    if (done()) return true;
    if (io.stopped()) io.restart();
    if (io.run_one_for(kPatience) == 0) return done();
  }
  return false;
}

void run_ready(net::io_context& io) {
  if (io.stopped()) io.restart();
  for (int step = 0; step < kMostSteps && io.poll_one() > 0; ++step) {
  }
}

struct TestClient::State {
  explicit State(net::io_context& io) : socket(io) {}

  Socket socket;
  std::string received;
  std::string to_send;
  bool is_sending = false, is_reading = true, was_closed = false;

  static Async<void> read(std::shared_ptr<State> state) {
    std::string piece(64 << 10, '\0');
    while (state->is_reading) {
      ErrorCode error;
      const size_t got = co_await state->socket.async_read_some(net::buffer(piece), into(error));
      if (!state->is_reading) co_return;
      state->received.append(piece, 0, got);
      if (error) {
        state->was_closed = true;
        co_return;
      }
    }
  }

  static Async<void> write(std::shared_ptr<State> state) {
    while (!state->to_send.empty()) {
      const std::string piece = std::exchange(state->to_send, {});
      ErrorCode error;
      co_await net::async_write(state->socket, net::buffer(piece), into(error));
      if (error) co_return;
    }
    state->is_sending = false;
  }
};

TestClient::TestClient(net::io_context& io) : state_(std::make_shared<State>(io)) {
  net::local::stream_protocol::socket ours(io), theirs(io);
  net::local::connect_pair(ours, theirs);
  state_->socket = Socket(std::move(ours));
  other_end_.emplace(std::move(theirs));
  net::co_spawn(io, State::read(state_), net::detached);
}

TestClient::~TestClient() { close(); }

Socket TestClient::other_end() { return *std::move(other_end_); }

void TestClient::send(std::string bytes) {
  state_->to_send += bytes;
  if (std::exchange(state_->is_sending, true)) return;
  net::co_spawn(state_->socket.get_executor(), State::write(state_), net::detached);
}

void TestClient::stop_reading() {
  state_->is_reading = false;
  ErrorCode ignored;
  state_->socket.cancel(ignored);
}

void TestClient::close() {
  state_->is_reading = false;
  ErrorCode ignored;
  state_->socket.close(ignored);
}

void TestClient::close_sending() {
  ErrorCode ignored;
  state_->socket.shutdown(Socket::shutdown_send, ignored);
}

const std::string& TestClient::received() const { return state_->received; }

bool TestClient::was_closed() const { return state_->was_closed; }

std::optional<Answer> TestClient::take_answer(bool to_head) {
  http::response_parser<http::string_body> parser;
  parser.eager(true);
  parser.skip(to_head);
  ErrorCode error;
  std::string& text = state_->received;
  size_t used = 0;
  while (!error && !parser.is_done() && used < text.size()) {
    used += parser.put(net::buffer(text.data() + used, text.size() - used), error);
  }
  if (!parser.is_done()) {
    if (!state_->was_closed) return std::nullopt;
    parser.put_eof(error);
  }
  if (!parser.is_header_done()) return std::nullopt;
  Answer answer;
  answer.status = parser.get().result_int();
  for (const auto& header : parser.get()) {
    std::string name(header.name_string());
    std::transform(name.begin(), name.end(), name.begin(), [](char c) { return std::tolower(c); });
    answer.headers[name] = std::string(header.value());
  }
  answer.body = parser.get().body();
  answer.size = used;
  answer.whole = parser.is_done();
  text.erase(0, used);
  return answer;
}

std::string request_text(const std::string& method, const std::string& path,
                         const std::string& body, const std::string& headers) {
  std::string text = method + " " + path + " HTTP/1.1\r\nHost: here\r\n" + headers;
  if (!body.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return text + "\r\n" + body;
}

}  // namespace kvkeep::daemon
