// After the answer, off the client's path: the slot is saved, given back, and what is new of it is
// stored.
//
// Threads: the io thread; blocks are stored by Door::keeping.
#pragma once

#include <optional>
#include <vector>

#include "daemon/door.h"
#include "daemon/flight.h"
#include "daemon/requests/timings.h"

namespace kvkeep::daemon {

// Counts as one of Door::saves_running. REQUIRES: a slot and a store.
Async<void> keep_slot(Door& door, Flight flight, std::optional<Timings> timings);

// The tokens that a slot holds for certain, where it is not saved.
std::vector<uint32_t> known_content(const Flight& flight, const std::optional<Timings>& timings);

}  // namespace kvkeep::daemon
