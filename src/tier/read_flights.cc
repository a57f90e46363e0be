#include "tier/read_flights.h"

#include <cassert>
#include <utility>

#include "base/guarded.h"

namespace kvkeep {

ReadFlights::Seat::~Seat() {
  if (leads_ && flight_ != nullptr) land(out_of_memory(Asked::kLoad));
}

void ReadFlights::Seat::land(Result<ImagePtr> result) {
  assert(leads_);
  flights_->land(*flight_, std::move(result));
  flight_.reset();
}

Result<ImagePtr> ReadFlights::Seat::wait() {
  assert(!leads_);
  return flights_->wait(*flight_);
}

// A flight to an older file of the key is left alone; the newer one is read beside it.
ReadFlights::Seat ReadFlights::take_seat(const BlockHash& hash, uint64_t generation) {
  MutexLock lock(mu_);
  const auto found = flights_.find(hash);
  if (found != flights_.end() && found->second->generation == generation)
    return Seat(*this, found->second, false);
  auto flight = std::make_shared<Flight>(Flight{hash, generation, {}});
  if (found == flights_.end()) flights_.emplace(hash, flight);
  return Seat(*this, std::move(flight), true);
}

void ReadFlights::land(Flight& flight, Result<ImagePtr> result) {
  MutexLock lock(mu_);
  flight.result = std::move(result);
  const auto found = flights_.find(flight.hash);
  if (found != flights_.end() && found->second.get() == &flight) flights_.erase(found);
  landed_.notify_all();
}

Result<ImagePtr> ReadFlights::wait(Flight& flight) {
  MutexLock lock(mu_);
  while (!flight.result) landed_.wait(mu_);
  return *flight.result;
}

}  // namespace kvkeep
