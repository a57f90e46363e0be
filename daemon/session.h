// One client's connection: its requests, one after the other, each to the page, completion or
// server that it is for.
//
// Threads: the io thread.
#pragma once

#include "daemon/door.h"
#include "daemon/http/http.h"

namespace kvkeep::daemon {

// Ends when the client or an answer closes the connection. The door must outlive it.
Async<void> serve_client(Door& door, Socket socket);

}  // namespace kvkeep::daemon
