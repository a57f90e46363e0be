// A client of kvkeep for tests, on the thread of what it asks, and how tests go on: one handler of
// the io context after the other until something is so, never by time.
//
// Only tests use it.
//
// Threads: the io thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "daemon/http/http.h"

namespace kvkeep::daemon {

// Runs handlers until `done` holds. False if it does not after many of them, or if nothing happens
// for long.
bool run_until(net::io_context& io, const std::function<bool()>& done);

// Runs what is ready now, and what follows from it at once.
void run_ready(net::io_context& io);

// Runs one coroutine to its end and returns what it does. Ends the program if it hangs.
template <class T>
T run_to_end(net::io_context& io, Async<T> work);

struct Answer {
  unsigned status = 0;
  std::map<std::string, std::string> headers{};  // Names in lower case.
  std::string body{};
  size_t size = 0;     // Bytes of all of it.
  bool whole = false;  // False: it was cut off.
};

class TestClient {
 public:
  // Connected to other_end(), which is to be served.
  explicit TestClient(net::io_context& io);
  ~TestClient();
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  Socket other_end();
  // Returns at once; bytes go out as the other end takes them.
  void send(std::string bytes);
  // From now on takes nothing in.
  void stop_reading();
  void close();
  void close_sending();

  const std::string& received() const;
  bool was_closed() const;  // By the other end.

  // The answer at the front of what was received, once it is whole or the other end has closed,
  // which is then taken away from there.
  std::optional<Answer> take_answer(bool to_head = false);

 private:
  struct State;
  const std::shared_ptr<State> state_;
  std::optional<Socket> other_end_;
};

// "POST /x HTTP/1.1" with a length; `headers` as lines, each with its end.
std::string request_text(const std::string& method, const std::string& path,
                         const std::string& body = "", const std::string& headers = "");

}  // namespace kvkeep::daemon

#include <boost/asio/co_spawn.hpp>
#include <cstdlib>
#include <exception>

namespace kvkeep::daemon {

template <class T>
Async<void> keep_result(Async<T> work, std::optional<T>& result) {
  result.emplace(co_await std::move(work));
}

template <class T>
T run_to_end(net::io_context& io, Async<T> work) {
  std::optional<T> result;
  net::co_spawn(io, keep_result(std::move(work), result), [](const std::exception_ptr& error) {
    if (error) std::abort();  // Nothing of ours throws.
  });
  if (!run_until(io, [&] { return result.has_value(); })) std::abort();
  return *std::move(result);
}

}  // namespace kvkeep::daemon
