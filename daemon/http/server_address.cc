#include "daemon/http/server_address.h"

namespace kvkeep::daemon {
namespace {

Status malformed(std::string_view url, const std::string& why) {
  return Status(Code::kInvalidArgument,
                std::string(url) + ": " + why + " (write http://127.0.0.1:8080)");
}

}  // namespace

Result<ServerAddress> address_from_url(std::string_view url) {
  constexpr std::string_view scheme = "http://";
  if (url.substr(0, scheme.size()) != scheme) return malformed(url, "it is no http URL");
  std::string_view rest = url.substr(scheme.size());
  ServerAddress address;
  const size_t slash = rest.find('/');
  if (slash != std::string_view::npos) {
    address.prefix = rest.substr(slash);
    while (!address.prefix.empty() && address.prefix.back() == '/') address.prefix.pop_back();
    rest = rest.substr(0, slash);
  }
  address.port = 8080;
  const size_t bracket = rest.rfind(']');  // Of an IPv6 address.
  const size_t colon = rest.rfind(':');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
    uint32_t port = 0;
    const std::string_view digits = rest.substr(colon + 1);
    for (const char digit : digits) {
      if (digit < '0' || digit > '9' || port > UINT16_MAX) return malformed(url, "no such port");
      port = port * 10 + static_cast<uint32_t>(digit - '0');
    }
    if (port == 0 || port > UINT16_MAX) return malformed(url, "no such port");
    address.port = static_cast<uint16_t>(port);
    rest = rest.substr(0, colon);
  }
  if (rest.size() > 2 && rest.front() == '[' && rest.back() == ']') {
    rest = rest.substr(1, rest.size() - 2);
  }
  if (rest.empty() || rest.find_first_of("[]@ ") != std::string_view::npos) {
    return malformed(url, "it names no host");
  }
  address.host = rest;
  return address;
}

}  // namespace kvkeep::daemon
