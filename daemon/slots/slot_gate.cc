#include "daemon/slots/slot_gate.h"

#include <algorithm>
#include <cassert>
#include <tuple>

namespace kvkeep::daemon {

// Lives in the coroutine that waits, and is in the queue as long as that lives: the io context may
// end before its turn has come.
struct SlotGate::Waiter {
  Waiter(SlotGate& in, std::optional<uint32_t> only_) : gate(in), only(only_), wake(in.io_) {
    gate.waiters_.push_back(this);
  }
  ~Waiter() { std::erase(gate.waiters_, this); }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  SlotGate& gate;
  const std::optional<uint32_t> only;
  net::steady_timer wake;  // Expires never; cancelled when it is this one's turn, or it gave up.
};

uint64_t common_prefix(std::span<const uint32_t> a, std::span<const uint32_t> b) {
  const size_t most = std::min(a.size(), b.size());
  return std::mismatch(a.begin(), a.begin() + most, b.begin()).first - a.begin();
}

const SlotContent& SlotReservation::content() const { return gate_->slots_[slot_]; }

void SlotReservation::set_tokens(std::vector<uint32_t> tokens) {
  gate_->slots_[slot_].tokens = std::move(tokens);
}

void SlotReservation::set_being_saved() { gate_->slots_[slot_].is_being_saved = true; }

void SlotReservation::release() {
  if (SlotGate* gate = std::exchange(gate_, nullptr)) gate->release(slot_);
}

SlotGate::SlotGate(net::any_io_executor io, uint32_t slots) : io_(std::move(io)), slots_(slots) {}

bool SlotGate::can_have(const std::optional<uint32_t>& only) const {
  if (only.has_value()) return !slots_[*only].is_reserved;
  return std::any_of(slots_.begin(), slots_.end(),
                     [](const SlotContent& slot) { return !slot.is_reserved; });
}

Async<std::optional<SlotReservation>> SlotGate::acquire(std::optional<uint32_t> only,
                                                        const Choice& choose, ClientWatch& watch) {
  if (only.has_value()) *only %= slots_.size();
  // Those who came before and could use the slot as well go first.
  const bool first = std::none_of(waiters_.begin(), waiters_.end(), [&](const Waiter* other) {
    return !only.has_value() || !other->only.has_value() || *other->only == *only;
  });
  if (!first || !can_have(only)) {
    Waiter waiter(*this, only);
    const WhileWatching watching(watch, [&waiter] { waiter.wake.cancel(); });
    const auto is_mine = [&] {
      // The first in the queue that could use what is free now.
      for (const Waiter* other : waiters_) {
        if (can_have(other->only)) return other == &waiter;
      }
      return false;
    };
    while (!watch.is_gone() && !is_mine()) {
      ErrorCode cancelled;
      waiter.wake.expires_at(net::steady_timer::time_point::max());
      co_await waiter.wake.async_wait(into(cancelled));
    }
  }
  if (watch.is_gone()) {
    wake();  // The next one may have waited for this one to take its turn.
    co_return std::nullopt;
  }
  const uint32_t slot = only.has_value() ? *only : choose(slots_);
  assert(!slots_[slot].is_reserved);
  slots_[slot].is_reserved = true;
  wake();  // There may be another free slot.
  co_return SlotReservation(*this, slot);
}

std::optional<SlotReservation> SlotGate::try_acquire(uint32_t slot) {
  if (slots_[slot].is_reserved) return std::nullopt;
  slots_[slot].is_reserved = true;
  return SlotReservation(*this, slot);
}

void SlotGate::forget_tokens(uint32_t slot) { slots_[slot % slots_.size()].tokens.clear(); }

void SlotGate::release(uint32_t slot) {
  slots_[slot].is_reserved = false;
  slots_[slot].is_being_saved = false;
  slots_[slot].last_used = ++uses_;
  wake();
}

void SlotGate::wake() {
  for (Waiter* waiter : waiters_) {
    if (!can_have(waiter->only)) continue;
    waiter->wake.cancel();
    return;
  }
}

uint32_t best_slot(std::span<const SlotContent> slots, std::span<const uint32_t> prompt,
                   uint64_t stored_tokens) {
  // Compared from left to right; more is better.
  using Rank = std::tuple<uint64_t, bool, uint64_t, uint64_t>;
  const auto rank = [&](const SlotContent& slot) {
    const uint64_t live = common_prefix(slot.tokens, prompt);
    const bool enough = live > 0 && live >= stored_tokens;
    const bool nothing_lost = live == slot.tokens.size();
    return Rank(enough ? live : 0, nothing_lost, live, UINT64_MAX - slot.last_used);
  };
  std::optional<uint32_t> best;
  for (uint32_t i = 0; i < slots.size(); ++i) {
    if (slots[i].is_reserved) continue;
    if (!best.has_value() || rank(slots[i]) > rank(slots[*best])) best = i;
  }
  assert(best.has_value());
  return *best;
}

}  // namespace kvkeep::daemon
