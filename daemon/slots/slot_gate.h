// SlotGate: who uses which slot of the server.
//
// A slot is reserved from before a state is restored into it until it has been saved again. When
// all are reserved, requests wait in the order in which they came, as they would in the server.
//
// Threads: the io thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "daemon/http/client_watch.h"
#include "daemon/http/http.h"

namespace kvkeep::daemon {

// What is known of a slot.
struct SlotContent {
  bool is_reserved = false;
  bool is_being_saved = false;  // Reserved, but only for a moment more.
  // Tokens whose state it holds, as far as known. It may hold more.
  std::vector<uint32_t> tokens{};
  uint64_t last_used = 0;  // Grows with every release.
};

// How many tokens both begin with.
uint64_t common_prefix(std::span<const uint32_t> a, std::span<const uint32_t> b);

class SlotGate;

// One reserved slot. Gives it back when destroyed.
class SlotReservation {
 public:
  SlotReservation(SlotGate& gate, uint32_t slot) : gate_(&gate), slot_(slot) {}
  SlotReservation(SlotReservation&& other) noexcept
      : gate_(std::exchange(other.gate_, nullptr)), slot_(other.slot_) {}
  SlotReservation& operator=(SlotReservation&&) = delete;
  ~SlotReservation() { release(); }

  uint32_t slot() const { return slot_; }
  const SlotContent& content() const;
  // What the slot holds now.
  void set_tokens(std::vector<uint32_t> tokens);
  void set_being_saved();
  void release();

 private:
  SlotGate* gate_;
  uint32_t slot_;
};

class SlotGate {
 public:
  // Which of the free slots to take: an index into `slots` that is not reserved.
  using Choice = std::function<uint32_t(std::span<const SlotContent> slots)>;

  SlotGate(net::any_io_executor io, uint32_t slots);

  // Waits for a slot: `only` that one if it is given, else one of those that are free, by `choose`,
  // which is called without a wait between it and the reservation. Nothing if the client leaves
  // first. The gate must outlive the reservation.
  Async<std::optional<SlotReservation>> acquire(std::optional<uint32_t> only, const Choice& choose,
                                                ClientWatch& watch);
  // The slot if it is free now.
  std::optional<SlotReservation> try_acquire(uint32_t slot);

  // Somebody else changed what a slot holds.
  void forget_tokens(uint32_t slot);

  std::span<const SlotContent> slots() const { return slots_; }
  size_t waiting() const { return waiters_.size(); }

 private:
  friend class SlotReservation;
  struct Waiter;

  bool can_have(const std::optional<uint32_t>& only) const;
  void release(uint32_t slot);
  void wake();

  const net::any_io_executor io_;
  std::vector<SlotContent> slots_;
  std::deque<Waiter*> waiters_;
  uint64_t uses_ = 0;
};

// The free slot that a prompt gains most from. `stored_tokens` of it could be restored. Slots that
// hold at least as much of it come first; else one whose content is a part of the prompt anyhow,
// else an empty one, else the one used longest ago.
uint32_t best_slot(std::span<const SlotContent> slots, std::span<const uint32_t> prompt,
                   uint64_t stored_tokens);

}  // namespace kvkeep::daemon
