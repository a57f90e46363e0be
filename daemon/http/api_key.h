// Whether a request carries one of the server's API keys.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "daemon/http/exchange.h"

namespace kvkeep::daemon {

// As "Authorization: Bearer KEY", as "X-Api-Key: KEY", or as the password of "Authorization:
// Basic", which browsers can send. True where no key is needed. Takes as long for a wrong key as
// for a right one.
bool has_api_key(const RequestHead& head, const std::vector<std::string>& keys);

}  // namespace kvkeep::daemon
