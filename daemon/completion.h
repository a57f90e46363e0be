// A completion request: its prompt's prefix is restored into a slot, the server answers, and what
// the slot holds then is stored.
//
// Threads: the io thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/door.h"
#include "daemon/http/exchange.h"
#include "daemon/requests/completion_request.h"

namespace kvkeep::daemon {

// Serves one completion whose body has been read. True if another request may follow.
Async<bool> serve_completion(Door& door, ClientConnection& client, const RequestHead& head,
                             std::string body, Route route);

// What a client hears where the server gives no answer: that it is still loading, or `why`.
OwnAnswer server_is_away(const Door& door, const std::string& why);

// The tokens of a prompt as the server itself makes them. Errors of ServerApi.
Async<Result<std::vector<uint32_t>>> tokens_of(ServerApi& api, const CompletionRequest& request);

}  // namespace kvkeep::daemon
