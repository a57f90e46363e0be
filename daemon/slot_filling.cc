#include "daemon/slot_filling.h"

#include <algorithm>
#include <chrono>

#include "daemon/http/pool.h"

namespace kvkeep::daemon {
namespace {

using SteadyClock = std::chrono::steady_clock;

// How many restores in a row may be of no use.
constexpr uint32_t kMostUnused = 2;

double seconds_since(SteadyClock::time_point began) {
  return std::chrono::duration<double>(SteadyClock::now() - began).count();
}

// Whether the slots take their cells from one store, which may be full.
bool have_shared_cells(const Door& door) {
  const ServerIdentity& identity = door.store->identity();
  return door.props.slots > 1 && (identity.whole.has_value() || identity.layout.streams == 1);
}

// The server did not take a file that was whole. It goes on, without us.
void note_failed_restore(Door& door, const Result<SlotAction>& done) {
  ++door.tally.restore_failures;
  ++door.failed_restores;
  if (!done.ok() && done.status().code() == Code::kUnavailable) return;
  // Slots that share their cells may be short of them for a while.
  const bool shared = have_shared_cells(door);
  if (shared && door.failed_restores < 3) return;
  const std::string why =
      done.ok() ? "it restored another number of tokens than there were" : done.status().message();
  door.stop_caching("restore_failed", "the server does not restore its own slot files: " + why);
}

// Restores a file into a slot. Slots that share their cells may be short of them: then those that
// nobody uses give theirs up, which costs nothing that is not stored.
Async<Result<SlotAction>> restore_slot(Door& door, uint32_t slot, const std::string& name) {
  Result<SlotAction> done = co_await door.api.restore_slot(slot, name);
  const bool shared = have_shared_cells(door);
  if (done.ok() || !shared || done.status().code() == Code::kUnavailable) co_return done;
  for (uint32_t other = 0; other < door.props.slots; ++other) {
    std::optional<SlotReservation> unused = door.gate->try_acquire(other);
    if (!unused.has_value()) continue;
    unused->set_tokens({});
    const Status erased = co_await door.api.erase_slot(other);
    if (!erased.ok()) door.log.debug("a slot was not erased: " + erased.message());
  }
  co_return co_await door.api.restore_slot(slot, name);
}

// Restores what was matched into the flight's slot, as far as it turns out to be whole.
Async<void> restore(Door& door, Flight& flight, const PrefixMatch& match) {
  std::optional<SlotFilePermit> permit =
      door.directory->reserve(flight.store->file_bytes(match.tokens));
  if (!permit.has_value()) {
    flight.report.reason = "slot_dir_full";
    co_return;
  }
  const SteadyClock::time_point began = SteadyClock::now();
  const uint32_t slot = flight.slot->slot();
  const std::filesystem::path path = permit->path();
  PromptStore& store = *flight.store;
  const Result<Assembled> file = co_await on_pool(
      door.restoring, [&] { return store.assemble(match, flight.tokens, slot, path); });
  if (!file.ok()) {
    door.log.warn("a slot file could not be written: " + file.status().message());
    flight.report.reason = "slot_dir_full";
    co_return;
  }
  if (file->end.has_value()) {
    flight.report.reason = name_of(*file->end);
    flight.stored_tokens = file->tokens;  // What is lost is stored again.
  }
  // What the slot holds already may be more than what has turned out to be whole.
  if (file->tokens <= flight.report.live_tokens) co_return;
  const Result<SlotAction> done = co_await restore_slot(door, slot, permit->name());
  if (!done.ok() || done->tokens != file->tokens) {
    note_failed_restore(door, done);
    flight.slot->set_tokens({});
    flight.held.clear();
    flight.report.live_tokens = 0;
    flight.report.reason = "restore_failed";
    co_return;
  }
  door.failed_restores = 0;
  flight.report.restored_tokens = file->tokens;
  flight.report.restored_bytes = file->bytes;
  flight.report.restore_seconds = seconds_since(began);
  flight.report.server_restore_seconds = done->milliseconds / 1000;
  flight.held.assign(flight.tokens.begin(), flight.tokens.begin() + file->tokens);
  door.economics.note_restore(file->bytes, file->tokens, flight.report.restore_seconds);
}

// How much of a prompt a slot has the state of. Whole slots cannot be cut back to a part.
uint64_t live_prefix(const PromptStore& store, std::span<const uint32_t> held,
                     std::span<const uint32_t> prompt) {
  const uint64_t same = common_prefix(held, prompt);
  return store.is_whole() && same < held.size() ? 0 : same;
}

// The slot that the request must have: the one that it names, or one that is just being saved and
// holds more of the prompt than others do. That takes a moment, computing takes long.
std::optional<uint32_t> wanted_slot(const Door& door, const Flight& flight) {
  if (flight.request.id_slot.has_value()) return static_cast<uint32_t>(*flight.request.id_slot);
  const uint64_t block = flight.store->settings().block_size;
  const std::span<const SlotContent> slots = door.gate->slots();
  std::optional<uint32_t> best;
  uint64_t most = 0;
  for (uint32_t i = 0; i < slots.size(); ++i) {
    const uint64_t live = live_prefix(*flight.store, slots[i].tokens, flight.tokens);
    const bool usable = !slots[i].is_reserved || slots[i].is_being_saved;
    if (!usable || live < most + block) continue;
    most = live;
    best = i;
  }
  if (!best.has_value() || !slots[*best].is_being_saved) return std::nullopt;
  return best;
}

}  // namespace

Async<void> fill_slot(Door& door, Flight& flight, ClientWatch& watch) {
  std::optional<PrefixMatch> match;
  const auto look_up = [&] {
    Result<PrefixMatch> found = flight.store->match(flight.tokens, flight.request.salt);
    if (found.ok()) match = *std::move(found);
  };
  const SlotGate::Choice choose = [&](std::span<const SlotContent> slots) {
    look_up();
    return best_slot(slots, flight.tokens, match.has_value() ? match->tokens : 0);
  };
  const std::optional<uint32_t> only = wanted_slot(door, flight);
  std::optional<SlotReservation> slot = co_await door.gate->acquire(only, choose, watch);
  if (!slot.has_value()) co_return;
  flight.slot.emplace(*std::move(slot));
  if (only.has_value()) look_up();  // It was not asked to choose.
  const SlotContent& content = flight.slot->content();
  flight.held = content.tokens;
  RequestReport& report = flight.report;
  report.slot = flight.slot->slot();
  report.live_tokens = live_prefix(*flight.store, content.tokens, flight.tokens);
  // The last token is computed in any case.
  if (report.live_tokens == flight.tokens.size()) --report.live_tokens;
  if (!match.has_value()) co_return;
  flight.stored_tokens = match->tokens;
  report.stored_tokens = match->tokens;
  for (const MatchedBlock& block : match->blocks) report.keys.push_back(block.key);
  if (match->end.has_value()) report.reason = name_of(*match->end);
  if (!match->end.has_value() && match->blocks.empty()) report.reason = "short";
  if (match->tokens <= report.live_tokens) co_return;

  const uint64_t gained = match->tokens - report.live_tokens;
  const uint64_t bytes = flight.store->file_bytes(match->tokens);
  const RestoreEconomics::Verdict verdict = door.economics.judge(gained, bytes);
  if (!verdict.pays) {
    ++door.tally.restores_not_worth;
    report.reason = "not_worth";
    door.log.debug("restore left out: " + door.economics.explain());
    co_return;
  }
  co_await restore(door, flight, *match);
}

// A server goes on from the last token, from a checkpoint a little before it, or, where the state
// of a sliding window does not reach back far enough, from the beginning.
void check_use(Door& door, Flight& flight, const Timings& timings) {
  RequestReport& report = flight.report;
  if (report.restored_tokens == 0 || !flight.request.honours_id_slot) return;
  if (2 * timings.cache_n >= report.restored_tokens) {
    report.restored_tokens = std::min(report.restored_tokens, timings.cache_n + 1);
    door.unused_restores = 0;
    return;
  }
  report.restored_tokens = 0;
  report.reason = "restore_unused";
  ++door.tally.restores_unused;
  if (++door.unused_restores < kMostUnused) return;
  door.stop_caching("restore_unused",
                    "the server computes restored slots of this model again (take a newer "
                    "llama-server, or start it with --swa-full)");
}

Async<void> take_any_slot(Door& door, Flight& flight, ClientWatch& watch) {
  const bool uses_one = flight.request.honours_id_slot && flight.report.reason != "not_json" &&
                        flight.report.reason != "no_prompt" &&
                        flight.report.reason != "several_prompts";
  if (!uses_one || !door.is_ready()) co_return;
  const SlotGate::Choice choose = [](std::span<const SlotContent> slots) {
    return best_slot(slots, {}, 0);
  };
  std::optional<uint32_t> only;
  if (flight.request.id_slot.has_value()) only = static_cast<uint32_t>(*flight.request.id_slot);
  std::optional<SlotReservation> slot = co_await door.gate->acquire(only, choose, watch);
  if (slot.has_value()) flight.slot.emplace(*std::move(slot));
}

}  // namespace kvkeep::daemon
