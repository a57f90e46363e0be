#include "daemon/http/listener.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kvkeep::daemon {
namespace {

using Tcp = net::ip::tcp;
using Unix = net::local::stream_protocol;

// Errors of accept() that pass: connections that ended early, or no free descriptor.
constexpr auto kAfterError = std::chrono::milliseconds(100);

// llama-server would keep the port in use, and let clients wait on it, after our end.
template <class Acceptor>
void keep_from_children(Acceptor& acceptor) {
  ::fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
}

template <class Protocol>
Async<void> accept_from(typename Protocol::acceptor& acceptor, std::function<void(Socket)> serve) {
  while (acceptor.is_open()) {
    ErrorCode error;
    typename Protocol::socket socket = co_await acceptor.async_accept(into(error));
    if (!acceptor.is_open()) co_return;
    if (!error) {
      serve(Socket(std::move(socket)));
      continue;
    }
    net::steady_timer timer(acceptor.get_executor(), kAfterError);
    co_await timer.async_wait(into(error));
  }
}

class TcpListener : public Listener {
 public:
  TcpListener(net::any_io_executor io, std::string host) : acceptor_(io), host_(std::move(host)) {}

  ErrorCode open(const Tcp::endpoint& endpoint) {
    ErrorCode error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) keep_from_children(acceptor_);
    if (!error) acceptor_.set_option(Tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(net::socket_base::max_listen_connections, error);
    return error;
  }
  std::string url() const override {
    ErrorCode ignored;
    const bool v6 = host_.find(':') != std::string::npos;
    return "http://" + (v6 ? "[" + host_ + "]" : host_) + ":" +
           std::to_string(acceptor_.local_endpoint(ignored).port());
  }
  Async<void> accept(std::function<void(Socket)> serve) override {
    const auto at_once = [serve = std::move(serve)](Socket socket) {
      ErrorCode ignored;
      socket.set_option(Tcp::no_delay(true), ignored);
      serve(std::move(socket));
    };
    co_await accept_from<Tcp>(acceptor_, at_once);
  }
  void close() override {
    ErrorCode ignored;
    acceptor_.close(ignored);
  }

 private:
  Tcp::acceptor acceptor_;
  const std::string host_;
};

class UnixListener : public Listener {
 public:
  UnixListener(net::any_io_executor io, std::string path) : acceptor_(io), path_(std::move(path)) {}
  ~UnixListener() override {
    if (bound_) ::unlink(path_.c_str());
  }

  ErrorCode open() {
    ErrorCode error;
    // A socket that nobody answers on is left from a process that was killed.
    Unix::socket probe(acceptor_.get_executor());
    probe.connect(Unix::endpoint(path_), error);
    if (!error) return net::error::address_in_use;
    struct stat info {};
    if (::lstat(path_.c_str(), &info) == 0 && S_ISSOCK(info.st_mode)) ::unlink(path_.c_str());
    const mode_t before = ::umask(0177);
    error = {};
    acceptor_.open(Unix(), error);
    if (!error) keep_from_children(acceptor_);
    if (!error) acceptor_.bind(Unix::endpoint(path_), error);
    ::umask(before);
    bound_ = !error;
    if (!error) acceptor_.listen(net::socket_base::max_listen_connections, error);
    return error;
  }
  std::string url() const override { return "unix:" + path_; }
  Async<void> accept(std::function<void(Socket)> serve) override {
    co_await accept_from<Unix>(acceptor_, std::move(serve));
  }
  void close() override {
    ErrorCode ignored;
    acceptor_.close(ignored);
  }

 private:
  Unix::acceptor acceptor_;
  const std::string path_;
  bool bound_ = false;
};

// The path of a Unix socket; empty if `host` is none.
std::string socket_path(const std::string& host) {
  if (host.rfind("unix:", 0) == 0) return host.substr(5);
  const bool is_path = host.size() > 5 && host.compare(host.size() - 5, 5, ".sock") == 0;
  return is_path ? host : "";
}

Status refused(const std::string& where, const ErrorCode& error) {
  return Status(Code::kUnavailable, where + ": " + error.message());
}

Result<std::unique_ptr<Listener>> open_tcp(net::any_io_executor io, const std::string& host,
                                           uint16_t port) {
  const std::string where = host + ":" + std::to_string(port);
  Tcp::resolver resolver(io);
  ErrorCode error;
  const auto found = resolver.resolve(host, std::to_string(port), Tcp::resolver::passive, error);
  if (error) return refused(where, error);
  auto listener = std::make_unique<TcpListener>(io, host);
  for (const auto& entry : found) {
    error = listener->open(entry.endpoint());
    if (!error) return std::unique_ptr<Listener>(std::move(listener));
    listener = std::make_unique<TcpListener>(io, host);
  }
  return refused(where, error);
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::open(net::any_io_executor io, const std::string& host,
                                                 uint16_t port) {
  const std::string path = socket_path(host);
  if (path.empty()) return open_tcp(std::move(io), host, port);
  auto listener = std::make_unique<UnixListener>(std::move(io), path);
  const ErrorCode error = listener->open();
  if (error) return refused(path, error);
  return std::unique_ptr<Listener>(std::move(listener));
}

Result<uint16_t> free_port(net::any_io_executor io) {
  ErrorCode error;
  Tcp::acceptor acceptor(io);
  const Tcp::endpoint any(net::ip::address_v4::loopback(), 0);
  acceptor.open(any.protocol(), error);
  if (!error) acceptor.bind(any, error);
  if (error) return refused("127.0.0.1", error);
  return acceptor.local_endpoint(error).port();
}

}  // namespace kvkeep::daemon
