// Where the server is that kvkeep stands in front of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kvkeep/status.h"

namespace kvkeep::daemon {

struct ServerAddress {
  std::string host = "127.0.0.1";  // A numeric address or a name.
  uint16_t port = 0;
  std::string prefix{};   // "/x" of --api-prefix; what paths begin with.
  std::string api_key{};  // For kvkeep's own calls; empty: none.
};

// From "http://host:port/prefix"; port 8080 if there is none. kInvalidArgument, with the way out.
Result<ServerAddress> address_from_url(std::string_view url);

}  // namespace kvkeep::daemon
