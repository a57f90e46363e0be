// ReadFlights: loads that want the same file at the same time share one read (LOAD-15).
//
// A load takes a seat for each file it wants. The first one leads: it reads, and lands the flight
// with what came of it; the others wait for that. A load lands every flight it leads before it
// waits for one that it does not lead, so loads cannot wait for each other.
//
// Threads: any thread. mu_ is a leaf lock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/mutex.h"
#include "codec/image.h"
#include "kvkeep/block_hash.h"
#include "kvkeep/status.h"

namespace kvkeep {

class ReadFlights {
  struct Flight;

 public:
  class Seat {
   public:
    Seat() = default;
    Seat(Seat&&) = default;
    Seat& operator=(Seat&&) = default;
    ~Seat();  // A leader that never landed lands with an error.

    bool leads() const { return leads_; }
    explicit operator bool() const { return flight_ != nullptr; }
    // REQUIRES: leads().
    void land(Result<ImagePtr> result);
    // REQUIRES: !leads().
    Result<ImagePtr> wait();

   private:
    friend class ReadFlights;
    Seat(ReadFlights& flights, std::shared_ptr<Flight> flight, bool leads)
        : flights_(&flights), flight_(std::move(flight)), leads_(leads) {}

    ReadFlights* flights_ = nullptr;
    std::shared_ptr<Flight> flight_;
    bool leads_ = false;
  };

  // For the file of this generation.
  Seat take_seat(const BlockHash& hash, uint64_t generation) KVKEEP_EXCLUDES(mu_);

 private:
  struct Flight {
    BlockHash hash;
    uint64_t generation;
    std::optional<Result<ImagePtr>> result;  // Under mu_.
  };
  void land(Flight& flight, Result<ImagePtr> result) KVKEEP_EXCLUDES(mu_);
  Result<ImagePtr> wait(Flight& flight) KVKEEP_EXCLUDES(mu_);

  Mutex mu_;
  CondVar landed_;
  std::unordered_map<BlockHash, std::shared_ptr<Flight>> flights_ KVKEEP_GUARDED_BY(mu_);
};

}  // namespace kvkeep
