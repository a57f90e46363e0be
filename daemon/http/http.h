// The parts of Boost that the daemon's sockets are made of, under short names.
//
// Everything that waits is a coroutine on one thread, so what it touches needs no locks. Errors of
// the network arrive as error codes, through into().
#pragma once

#include <utility>  // Boost 1.74's awaitable.hpp uses it without including it.

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

namespace kvkeep::daemon {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

// What a coroutine that yields a T returns.
template <class T>
using Async = net::awaitable<T>;
using ErrorCode = beast::error_code;
// A connection to a client or to the server, TCP or Unix.
using Socket = net::generic::stream_protocol::socket;
// The same with time limits: what takes longer than expires_after() ends with an error.
using Stream = beast::basic_stream<net::generic::stream_protocol>;

// co_await x.async_…(…, into(error)): the error goes into `error` and is not thrown.
inline auto into(ErrorCode& error) { return net::redirect_error(net::use_awaitable, error); }

}  // namespace kvkeep::daemon
