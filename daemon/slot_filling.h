// Before a request goes to the server: it gets a slot, and the slot as much of the prompt's state
// as is known and pays.
//
// Threads: the io thread; blocks are loaded by Door::restoring.
#pragma once

#include "daemon/door.h"
#include "daemon/flight.h"
#include "daemon/http/client_watch.h"
#include "daemon/requests/timings.h"

namespace kvkeep::daemon {

// REQUIRES: the flight's store and tokens. Without a slot if the client leaves first.
Async<void> fill_slot(Door& door, Flight& flight, ClientWatch& watch);

// A slot for a request that is not cached: it uses one all the same, and must not take one from a
// request that has just had its state restored there.
Async<void> take_any_slot(Door& door, Flight& flight, ClientWatch& watch);

// After the answer: makes the report say how much of what was restored the server used. One that
// goes on computing it again gets no more of it.
void check_use(Door& door, Flight& flight, const Timings& timings);

}  // namespace kvkeep::daemon
