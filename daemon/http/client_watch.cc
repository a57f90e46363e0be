#include "daemon/http/client_watch.h"

#include <poll.h>
#include <sys/socket.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <cerrno>

namespace kvkeep::daemon {
namespace {

enum class Seen { kNothing, kMoreRequest, kEnd };

#ifdef POLLRDHUP
constexpr short kHangUp = POLLRDHUP | POLLHUP | POLLERR;
#else
constexpr short kHangUp = POLLHUP | POLLERR;
#endif
// How often a client is looked at that has sent more than its request: its socket stays readable.
constexpr auto kLookAgain = std::chrono::milliseconds(50);

Seen look_at(int socket) {
  pollfd asked{socket, kHangUp, 0};
  if (::poll(&asked, 1, 0) > 0 && (asked.revents & kHangUp) != 0) return Seen::kEnd;
  char byte = 0;
  const ssize_t got = ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got > 0) return Seen::kMoreRequest;
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return Seen::kNothing;
  return Seen::kEnd;
}

}  // namespace

struct ClientWatch::State {
  explicit State(Socket& watched) : client(watched), timer(watched.get_executor()) {}

  Socket& client;  // Looked at only while `watching`.
  net::steady_timer timer;
  std::function<void()> action;
  bool watching = true;
  bool gone = false;

  void note_gone() {
    gone = true;
    if (const std::function<void()> now = std::exchange(action, {})) now();
  }

  static Async<void> run(std::shared_ptr<State> state) {
    while (state->watching && !state->gone) {
      ErrorCode error;
      co_await state->client.async_wait(Socket::wait_read, into(error));
      if (!state->watching) co_return;
      if (error) co_return state->note_gone();
      const Seen seen = look_at(state->client.native_handle());
      if (seen == Seen::kEnd) co_return state->note_gone();
      if (seen == Seen::kNothing) continue;
      state->timer.expires_after(kLookAgain);
      co_await state->timer.async_wait(into(error));
    }
  }
};

ClientWatch::ClientWatch(Socket& client) : state_(std::make_shared<State>(client)) {
  net::co_spawn(client.get_executor(), State::run(state_), net::detached);
}

ClientWatch::~ClientWatch() {
  state_->watching = false;
  state_->timer.cancel();
  ErrorCode ignored;
  state_->client.cancel(ignored);
}

bool ClientWatch::is_gone() const { return state_->gone; }

void ClientWatch::on_gone(std::function<void()> action) {
  if (state_->gone && action) return action();
  state_->action = std::move(action);
}

}  // namespace kvkeep::daemon
