// WritePromise: a ticket of the write queue and the bytes that are reserved with it. Both are given
// back unless the block is published that they are for.
//
// Threads: one thread at a time.
#pragma once

#include "tier/cache_state.h"

namespace kvkeep {

class WritePromise {
 public:
  // Reserves the bytes.
  WritePromise(CacheState& state, Ticket ticket, uint64_t charge)
      : state_(state), ticket_(ticket), charge_(charge) {
    state_.account->reserve(charge_);
  }
  ~WritePromise() {
    if (kept_) return;
    state_.account->unreserve(charge_);
    state_.queue.give_back(ticket_);
  }
  WritePromise(const WritePromise&) = delete;
  WritePromise& operator=(const WritePromise&) = delete;

  void keep() { kept_ = true; }

 private:
  CacheState& state_;
  const Ticket ticket_;
  const uint64_t charge_;
  bool kept_ = false;
};

}  // namespace kvkeep
