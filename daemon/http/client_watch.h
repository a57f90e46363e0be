// ClientWatch sees a client leave while its request is being worked on.
//
// A client that closes its end, or only the half that it sends on, is gone: that is what
// llama-server takes it for as well.
//
//   ClientWatch watch(socket);
//   const WhileWatching closing(watch, [&] { server.close(); });
//   co_await …;
//   if (watch.is_gone()) co_return;
//
// Threads: the io thread.
#pragma once

#include <functional>
#include <memory>

#include "daemon/http/http.h"

namespace kvkeep::daemon {

class ClientWatch {
 public:
  // `client` must outlive the watch. Watches until it is destroyed; nobody may read meanwhile.
  explicit ClientWatch(Socket& client);
  ~ClientWatch();
  ClientWatch(const ClientWatch&) = delete;
  ClientWatch& operator=(const ClientWatch&) = delete;

  bool is_gone() const;
  // Called once when the client leaves, at once if it has. One at a time: replaces the one before;
  // an empty function takes it away.
  void on_gone(std::function<void()> action);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

// Takes the action away again at the end of a scope.
class WhileWatching {
 public:
  WhileWatching(ClientWatch& watch, std::function<void()> action) : watch_(watch) {
    watch_.on_gone(std::move(action));
  }
  ~WhileWatching() { watch_.on_gone({}); }
  WhileWatching(const WhileWatching&) = delete;
  WhileWatching& operator=(const WhileWatching&) = delete;

 private:
  ClientWatch& watch_;
};

}  // namespace kvkeep::daemon
