// From a server that has just been started to one whose prompts are kept: waits until its model is
// loaded, finds out whose states its slots hold (identity.h), and opens the store.
//
// Threads: the io thread; the digest and the store are worked on by Door::keeping.
#pragma once

#include <atomic>

#include "daemon/door.h"
#include "daemon/identity.h"

namespace kvkeep::daemon {

// Ends when Door::is_ready() or it is known why not. `stopping` cuts the digest short.
Async<void> bring_up(Door& door, IdentitySettings settings, const std::atomic<bool>& stopping);

// Waits while a server that has loaded its model is being looked at, but not for the digest of a
// large model file.
Async<void> wait_until_settled(Door& door);

// True if the server is still the one whose identity the store was opened for, as far as it can be
// asked; stops caching if not. For servers that somebody else may restart.
Async<bool> is_same_server(Door& door);

}  // namespace kvkeep::daemon
