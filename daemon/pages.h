// kvkeep's own pages, below /kvkeep/: status for people, JSON, Prometheus, and why.
//
// Threads: the io thread.
#pragma once

#include <string>
#include <string_view>

#include "daemon/door.h"
#include "daemon/http/exchange.h"

namespace kvkeep::daemon {

// True for "/kvkeep" and what is below it.
bool is_own_page(std::string_view path);

// The answer to a request for one of them, whose `body` has been read. `path` is without prefix and
// query.
Async<OwnAnswer> own_page(Door& door, std::string path, std::string method, std::string body);

// One JSON object: all that /kvkeep/stats says.
std::string stats_json(const Door& door);

// The status page, which asks /kvkeep/stats by itself.
std::string_view status_page();

}  // namespace kvkeep::daemon
