#include "daemon/slots/slot_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>

#include "daemon/testing/test_client.h"

namespace kvkeep::daemon {
namespace {

using ::testing::ElementsAre;
using Tokens = std::vector<uint32_t>;

// Requests that come one after the other, each with a client that may leave.
class Gate : public ::testing::Test {
 protected:
  struct Guest {
    explicit Guest(net::io_context& io)
        : client(std::make_unique<TestClient>(io)), socket(client->other_end()) {}
    std::unique_ptr<TestClient> client;
    Socket socket;
    std::optional<ClientWatch> watch{};
    std::optional<SlotReservation> slot{};
    bool is_answered = false;
  };

  // Those that wait leave, as their coroutines use them.
  ~Gate() override {
    for (const auto& guest : guests_) {
      guest->client.reset();
      guest->slot.reset();
    }
    run_until(io_, [this] { return order_.size() == guests_.size(); });
    run_ready(io_);
  }

  void open(uint32_t slots) { gate_.emplace(io_.get_executor(), slots); }
  // Number of the guest that asks for a slot.
  size_t ask(std::optional<uint32_t> only = std::nullopt) {
    guests_.push_back(std::make_unique<Guest>(io_));
    Guest& guest = *guests_.back();
    guest.watch.emplace(guest.socket);
    const size_t number = guests_.size() - 1;
    net::co_spawn(io_, wait(guest, only, number), [](const std::exception_ptr&) {});
    run_ready(io_);
    return number;
  }
  void release(size_t guest) {
    guests_[guest]->slot.reset();
    run_ready(io_);
  }
  void leave(size_t guest) {
    guests_[guest]->client.reset();
    EXPECT_TRUE(run_until(io_, [&] { return guests_[guest]->watch->is_gone(); }));
    run_ready(io_);
  }
  bool has_slot(size_t guest) const { return guests_[guest]->slot.has_value(); }
  uint32_t slot_of(size_t guest) const { return guests_[guest]->slot->slot(); }

  Async<void> wait(Guest& guest, std::optional<uint32_t> only, size_t number) {
    const SlotGate::Choice choose = [](std::span<const SlotContent> slots) {
      return best_slot(slots, {}, 0);
    };
    std::optional<SlotReservation> got = co_await gate_->acquire(only, choose, *guest.watch);
    guest.is_answered = true;
    if (got.has_value()) guest.slot.emplace(*std::move(got));
    order_.push_back(number);
  }

  // The gate outlives the coroutines, which end with the io context.
  std::optional<SlotGate> gate_;
  std::vector<size_t> order_;  // Guests as they were answered.
  net::io_context io_{1};
  std::vector<std::unique_ptr<Guest>> guests_;
};

TEST_F(Gate, GivesEachASlotOfItsOwnWhileThereAreSome) {
  open(2);
  ask();
  ask();
  ask();
  EXPECT_TRUE(has_slot(0));
  EXPECT_TRUE(has_slot(1));
  EXPECT_NE(slot_of(0), slot_of(1));
  EXPECT_FALSE(has_slot(2));
  EXPECT_EQ(gate_->waiting(), 1u);
}

TEST_F(Gate, ServesInTheOrderOfArrival) {
  open(1);
  for (int i = 0; i < 5; ++i) ask();
  for (size_t i = 0; i < 4; ++i) release(i);
  EXPECT_THAT(order_, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(gate_->waiting(), 0u);
}

TEST_F(Gate, WhoNamesASlotWaitsForThatOne) {
  open(2);
  const size_t first = ask(0);
  const size_t second = ask(0);
  EXPECT_EQ(slot_of(first), 0u);
  EXPECT_FALSE(has_slot(second));
  release(first);
  EXPECT_EQ(slot_of(second), 0u);
}

TEST_F(Gate, NumbersBeyondTheSlotsWrapAround) {
  open(2);
  EXPECT_EQ(slot_of(ask(5)), 1u);
}

TEST_F(Gate, AWaiterForOneSlotHoldsUpNobodyElse) {
  open(2);
  ask(0);
  const size_t named = ask(0);
  const size_t any = ask();
  EXPECT_FALSE(has_slot(named));
  ASSERT_TRUE(has_slot(any));
  EXPECT_EQ(slot_of(any), 1u);
}

TEST_F(Gate, ALaterOneDoesNotOvertakeForTheSameSlot) {
  open(2);
  const size_t a = ask(0), b = ask(1);
  const size_t any = ask(), named = ask(1);
  release(b);
  EXPECT_TRUE(has_slot(any));
  EXPECT_FALSE(has_slot(named));
  release(any);
  EXPECT_EQ(slot_of(named), 1u);
  EXPECT_TRUE(has_slot(a));
}

TEST_F(Gate, AClientThatLeavesStopsWaiting) {
  open(1);
  ask();
  const size_t leaves = ask(), stays = ask();
  leave(leaves);
  EXPECT_TRUE(guests_[leaves]->is_answered);
  EXPECT_FALSE(has_slot(leaves));
  release(0);
  EXPECT_TRUE(has_slot(stays));
}

// The one that was woken leaves before it has taken its turn.
TEST_F(Gate, AClientThatLeavesInItsTurnPassesItOn) {
  open(1);
  ask();
  const size_t leaves = ask(), stays = ask();
  guests_[leaves]->client.reset();
  guests_[0]->slot.reset();
  EXPECT_TRUE(run_until(io_, [&] { return guests_[leaves]->is_answered; }));
  run_ready(io_);
  if (has_slot(leaves)) release(leaves);
  EXPECT_TRUE(has_slot(stays));
}

TEST_F(Gate, ManyThatComeAndGoAllGetTheirTurn) {
  open(3);
  for (size_t i = 0; i < 60; ++i) {
    ask(i % 4 == 0 ? std::optional<uint32_t>(i / 4 % 3) : std::nullopt);
    if (i % 7 == 3) leave(i);
  }
  for (size_t round = 0; round < 200 && order_.size() < 60; ++round) {
    for (const auto& guest : guests_) {
      if (guest->slot.has_value()) {
        guest->slot.reset();
        break;
      }
    }
    run_ready(io_);
  }
  EXPECT_EQ(order_.size(), 60u);
  EXPECT_EQ(gate_->waiting(), 0u);
}

TEST_F(Gate, WhatASlotHoldsIsRemembered) {
  open(2);
  ask(1);
  guests_[0]->slot->set_tokens({1, 2});
  guests_[0]->slot->set_being_saved();
  EXPECT_TRUE(gate_->slots()[1].is_being_saved);
  release(0);
  EXPECT_FALSE(gate_->slots()[1].is_being_saved);
  EXPECT_THAT(gate_->slots()[1].tokens, ElementsAre(1, 2));
  gate_->forget_tokens(3);
  EXPECT_TRUE(gate_->slots()[1].tokens.empty());
}

TEST_F(Gate, TryingTakesAFreeSlotOnly) {
  open(1);
  std::optional<SlotReservation> slot = gate_->try_acquire(0);
  EXPECT_TRUE(slot.has_value());
  EXPECT_FALSE(gate_->try_acquire(0).has_value());
  slot.reset();
  EXPECT_TRUE(gate_->try_acquire(0).has_value());
}

// Takes a slot and keeps it for ever.
Async<void> stay(SlotGate& gate, Socket socket) {
  ClientWatch watch(socket);
  const SlotGate::Choice first = [](std::span<const SlotContent>) { return 0u; };
  const std::optional<SlotReservation> slot = co_await gate.acquire(std::nullopt, first, watch);
  net::steady_timer timer(socket.get_executor(), net::steady_timer::time_point::max());
  ErrorCode ignored;
  co_await timer.async_wait(into(ignored));
}

// Coroutines end in any order with their io context: one that waits before one that has the slot.
TEST(GateAtTheEnd, OutlivesThoseThatWait) {
  auto io = std::make_unique<net::io_context>(1);
  SlotGate gate(io->get_executor(), 1);
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(std::make_unique<TestClient>(*io));
    net::co_spawn(*io, stay(gate, clients.back()->other_end()), [](const std::exception_ptr&) {});
    run_ready(*io);
  }
  EXPECT_EQ(gate.waiting(), 3u);
  clients.clear();
  io.reset();
  EXPECT_EQ(gate.waiting(), 0u);
  EXPECT_FALSE(gate.slots()[0].is_reserved);
}

TEST(BestSlot, IsTheOneThatHoldsMostOfThePrompt) {
  std::vector<SlotContent> slots(3);
  slots[0].tokens = {1, 2, 9};
  slots[1].tokens = {1, 2, 3, 9};
  EXPECT_EQ(best_slot(slots, Tokens{1, 2, 3, 4}, 0), 1u);
  slots[1].is_reserved = true;
  EXPECT_EQ(best_slot(slots, Tokens{1, 2, 3, 4}, 0), 0u);
}

TEST(BestSlot, SparesWhatOthersHoldWhereMoreCanBeRestored) {
  std::vector<SlotContent> slots(3);
  slots[0].tokens = {1, 2, 9};
  slots[2].tokens = {7};
  slots[2].last_used = 5;
  EXPECT_EQ(best_slot(slots, Tokens{1, 2, 3, 4}, 3), 1u);
  slots[1].is_reserved = true;
  slots[0].tokens = {1, 2};  // A part of the prompt: nothing is lost.
  EXPECT_EQ(best_slot(slots, Tokens{1, 2, 3, 4}, 3), 0u);
}

TEST(BestSlot, IsElseTheOneUsedLongestAgo) {
  std::vector<SlotContent> slots(3);
  for (uint32_t i = 0; i < 3; ++i) {
    slots[i].tokens = {7};
    slots[i].last_used = i == 1 ? 1 : 5;
  }
  EXPECT_EQ(best_slot(slots, Tokens{1}, 0), 1u);
}

TEST(Watch, SeesAClientThatCloses) {
  net::io_context io{1};
  auto client = std::make_unique<TestClient>(io);
  Socket socket = client->other_end();
  ClientWatch watch(socket);
  int called = 0;
  watch.on_gone([&] { ++called; });
  run_ready(io);
  EXPECT_FALSE(watch.is_gone());
  client.reset();
  EXPECT_TRUE(run_until(io, [&] { return called == 1; }));
  EXPECT_TRUE(watch.is_gone());
  watch.on_gone([&] { ++called; });  // At once.
  EXPECT_EQ(called, 2);
}

TEST(Watch, SeesAClientThatClosesOnlyItsHalf) {
  net::io_context io{1};
  TestClient client(io);
  Socket socket = client.other_end();
  ClientWatch watch(socket);
  client.close_sending();
  EXPECT_TRUE(run_until(io, [&] { return watch.is_gone(); }));
}

TEST(Watch, SeesAClientThatLeavesAfterItHasSentMore) {
  net::io_context io{1};
  TestClient client(io);
  Socket socket = client.other_end();
  ClientWatch watch(socket);
  client.send("GET /");
  run_ready(io);
  EXPECT_FALSE(watch.is_gone());
  client.close_sending();
  EXPECT_TRUE(run_until(io, [&] { return watch.is_gone(); }));
}

TEST(Watch, TakesNothingOfWhatTheClientSent) {
  net::io_context io{1};
  TestClient client(io);
  Socket socket = client.other_end();
  {
    ClientWatch watch(socket);
    client.send("more");
    run_ready(io);
  }
  run_ready(io);
  char bytes[8];
  EXPECT_EQ(socket.read_some(net::buffer(bytes)), 4u);
}

TEST(Watch, AnActionThatWasTakenAwayIsNotCalled) {
  net::io_context io{1};
  TestClient client(io);
  Socket socket = client.other_end();
  ClientWatch watch(socket);
  bool called = false;
  {
    const WhileWatching watching(watch, [&] { called = true; });
  }
  client.close_sending();
  EXPECT_TRUE(run_until(io, [&] { return watch.is_gone(); }));
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace kvkeep::daemon
