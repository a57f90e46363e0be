// Listener: where clients come in.
//
// Threads: the io thread.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "daemon/http/http.h"
#include "kvkeep/status.h"

namespace kvkeep::daemon {

class Listener {
 public:
  // `host`: an address, a name, or the path of a Unix socket, which ends in ".sock" or begins with
  // "unix:". kUnavailable with the address and the reason.
  static Result<std::unique_ptr<Listener>> open(net::any_io_executor io, const std::string& host,
                                                uint16_t port);
  virtual ~Listener() = default;

  // "http://127.0.0.1:8080", "unix:/run/x.sock".
  virtual std::string url() const = 0;
  // Gives each connection to `serve` until close().
  virtual Async<void> accept(std::function<void(Socket)> serve) = 0;
  virtual void close() = 0;
};

// A port of 127.0.0.1 that nobody listens on just now.
Result<uint16_t> free_port(net::any_io_executor io);

}  // namespace kvkeep::daemon
