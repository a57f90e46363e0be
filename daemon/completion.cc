#include "daemon/completion.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <chrono>

#include "connectors/llama/slot_file.h"
#include "daemon/mapped_file.h"
#include "daemon/pool.h"
#include "daemon/request_report.h"
#include "daemon/startup.h"
#include "daemon/timings.h"

namespace kvkeep::daemon {
namespace {

using SteadyClock = std::chrono::steady_clock;

double seconds_since(SteadyClock::time_point began) {
  return std::chrono::duration<double>(SteadyClock::now() - began).count();
}

// What is known of a request on its way.
struct Flight {
  CompletionRequest request;
  bool may_store = true;
  std::shared_ptr<PromptStore> store;  // Null: passed through.
  std::vector<uint32_t> tokens;        // Of the prompt.
  std::vector<uint32_t> held;          // What the slot is believed to hold before the request.
  uint64_t stored_tokens = 0;          // Of the prompt, that the store has.
  std::optional<SlotReservation> slot;
  RequestReport report;
};

// Why this request cannot be cached; empty if it can.
std::string why_uncached(const Door& door, const CompletionRequest& request) {
  if (!door.is_ready()) return door.uncached.reason;
  if (request.uncached.has_value()) return *request.uncached;
  if (request.route == Route::kMessages && door.messages_differ) return "template";
  if (request.route == Route::kResponses && door.responses_differ) return "template";
  return "";
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

// Restores what was matched into the flight's slot. False if the slot holds nothing of it now.
Async<bool> restore(Door& door, Flight& flight, const PrefixMatch& match) {
  std::optional<SlotFilePermit> permit =
      door.directory->reserve(flight.store->file_bytes(match.tokens));
  if (!permit.has_value()) {
    flight.report.reason = "slot_dir_full";
    co_return false;
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
    co_return false;
  }
  if (file->end.has_value()) {
    flight.report.reason = name_of(*file->end);
    flight.stored_tokens = file->tokens;  // What is lost is stored again.
  }
  // What the slot holds already may be more than what has turned out to be whole.
  if (file->tokens <= flight.report.live_tokens) co_return false;
  const Result<SlotAction> done = co_await restore_slot(door, slot, permit->name());
  if (!done.ok() || done->tokens != file->tokens) {
    note_failed_restore(door, done);
    flight.slot->set_tokens({});
    flight.held.clear();
    flight.report.live_tokens = 0;
    flight.report.reason = "restore_failed";
    co_return false;
  }
  door.failed_restores = 0;
  flight.report.restored_tokens = file->tokens;
  flight.report.restored_bytes = file->bytes;
  flight.report.restore_seconds = seconds_since(began);
  flight.report.server_restore_seconds = done->milliseconds / 1000;
  door.economics.note_restore(file->bytes, file->tokens, flight.report.restore_seconds);
  co_return true;
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

// Takes a slot and brings as much of the prompt into it as is known and pays.
Async<void> prepare_slot(Door& door, Flight& flight, ClientWatch& watch) {
  std::optional<PrefixMatch> match;
  const SlotGate::Choice choose = [&](std::span<const SlotContent> slots) {
    Result<PrefixMatch> found = flight.store->match(flight.tokens, flight.request.salt);
    if (found.ok()) match = *std::move(found);
    return best_slot(slots, flight.tokens, match.has_value() ? match->tokens : 0);
  };
  const std::optional<uint32_t> only = wanted_slot(door, flight);
  std::optional<SlotReservation> slot = co_await door.gate->acquire(only, choose, watch);
  if (!slot.has_value()) co_return;
  flight.slot.emplace(*std::move(slot));
  if (!match.has_value()) {
    Result<PrefixMatch> found = flight.store->match(flight.tokens, flight.request.salt);
    if (found.ok()) match = *std::move(found);
  }
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
  if (report.restored_tokens > 0)
    flight.held.assign(flight.tokens.begin(), flight.tokens.begin() + report.restored_tokens);
}

// Whether the slot holds a full block that is not stored yet. Where the server did not say how many
// tokens it generated (the client left), it is saved.
bool is_worth_saving(const Door& door, const Flight& flight,
                     const std::optional<Timings>& timings) {
  const uint64_t block = flight.store->settings().block_size;
  if (flight.store->is_whole()) return flight.tokens.size() >= block;
  uint64_t tokens = flight.tokens.size();
  if (timings.has_value()) {
    tokens = timings->cache_n + timings->prompt_n + timings->predicted_n;
    // The token that was generated last has no state yet.
    if (tokens > 0) --tokens;
    // A slot that was full has been shifted: its state is not that of its tokens.
    if (door.context_shift && tokens + 1 >= door.props.slot_tokens) return false;
  } else if (door.context_shift) {
    return false;
  }
  return tokens / block > flight.stored_tokens / block;
}

// The tokens that a slot holds for certain, where it is not saved.
std::vector<uint32_t> known_content(const Flight& flight, const std::optional<Timings>& timings) {
  const bool whole = flight.store != nullptr && flight.store->is_whole();
  if (whole) return {};  // What it has generated is not known.
  if (timings.has_value()) return flight.tokens;
  const auto same = common_prefix(flight.held, flight.tokens);
  return {flight.tokens.begin(), flight.tokens.begin() + same};
}

// Compares what a slot holds with what was foreseen for it.
void check_template(Door& door, const Flight& flight, std::span<const uint32_t> saved) {
  const uint64_t same = common_prefix(saved, flight.tokens);
  if (same == std::min<uint64_t>(saved.size(), flight.tokens.size())) return;
  // The server took another slot, which it may where a request cannot name one.
  if (std::equal(saved.begin(), saved.end(), flight.held.begin(), flight.held.end())) return;
  ++door.tally.template_differs;
  if (flight.request.route == Route::kMessages) door.messages_differ = true;
  if (flight.request.route == Route::kResponses) door.responses_differ = true;
}

Result<SavedSlot> read_saved(const PromptStore& store, const std::filesystem::path& path) {
  KVKEEP_TRY_ASSIGN(std::shared_ptr<MappedFile> file, MappedFile::open(path));
  return store.read(std::move(file));
}

// Whether what a slot holds now comes from this request. A request whose client left, or which took
// another slot, may have found what one before it left there, and that is not to be stored with
// this one's salt.
bool is_own(const Flight& flight, const std::optional<Timings>& timings,
            std::span<const uint32_t> saved) {
  if (timings.has_value() && flight.request.honours_id_slot) return true;
  const uint64_t same = common_prefix(saved, flight.tokens);
  if (same == saved.size()) return true;
  return same == flight.tokens.size() && common_prefix(flight.held, flight.tokens) < same;
}

// What the flight's slot holds, as the server saves it.
Async<Result<SavedSlot>> save(Door& door, const Flight& flight, const SlotFilePermit& permit) {
  const Result<SlotAction> saved = co_await door.api.save_slot(flight.slot->slot(), permit.name());
  if (!saved.ok()) co_return saved.status();
  co_return read_saved(*flight.store, permit.path());
}

// Saves the slot, gives it back, and stores its blocks.
Async<void> keep(Door& door, Flight flight, std::optional<Timings> timings) {
  if (!is_worth_saving(door, flight, timings)) {
    ++door.tally.saves_unneeded;
    flight.slot->set_tokens(known_content(flight, timings));
    co_return;
  }
  const uint64_t most = timings.has_value()
                            ? timings->cache_n + timings->prompt_n + timings->predicted_n
                            : std::max<uint64_t>(door.props.slot_tokens, flight.tokens.size());
  std::optional<SlotFilePermit> permit = door.directory->reserve(flight.store->file_bytes(most));
  if (!permit.has_value()) {
    ++door.tally.saves_dropped;
    flight.slot->set_tokens(known_content(flight, timings));
    co_return;
  }
  // Whoever goes on with this prompt waits for the slot (wanted_slot()).
  flight.slot->set_tokens(known_content(flight, timings));
  flight.slot->set_being_saved();
  if (door.may_change && !co_await is_same_server(door)) co_return;
  const Result<SavedSlot> file = co_await save(door, flight, *permit);
  if (!file.ok()) {
    flight.slot->set_tokens({});
    ++door.tally.save_failures;
    door.log.warn("slot " + std::to_string(flight.slot->slot()) +
                  " was not stored: " + file.status().message());
    co_return;
  }
  if (file->has_other_layout) {
    door.stop_caching("layout", "the server's slot files have changed their layout");
    co_return;
  }
  ++door.tally.saves;
  check_template(door, flight, file->tokens);
  flight.slot->set_tokens(file->tokens);
  flight.slot->release();
  if (!is_own(flight, timings, file->tokens)) co_return;
  PromptStore& store = *flight.store;
  const Result<StoreReport> report =
      co_await on_pool(door.keeping, [&] { return store.keep(*file, flight.request.salt); });
  if (!report.ok()) {
    door.log.warn("a prompt was not stored: " + report.status().message());
    co_return;
  }
  door.tally.blocks_stored += report->stored_blocks;
  if (!report->refused.ok()) {
    door.log.warn("a prompt was stored up to token " + std::to_string(report->tokens) + ": " +
                  report->refused.message());
  }
}

Async<void> keep_and_count(Door& door, Flight flight, std::optional<Timings> timings) {
  ++door.saves_running;
  co_await keep(door, std::move(flight), timings);
  --door.saves_running;
}

Headers headers_of(const RequestReport& report) {
  std::string reason = report.reason;
  // That what follows the cached tokens was never there is nothing to speak of.
  if (report.cached_tokens() > 0 && (reason.empty() || reason == "absent" || reason == "short")) {
    reason = report.restored_tokens > 0 ? "restored" : "live";
  }
  return {{"x-kvkeep-cached-tokens", std::to_string(report.cached_tokens())},
          {"x-kvkeep-reason", reason}};
}

// A request that is not cached uses a slot all the same, and must not take one from a request that
// has just had its state restored there.
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

// Everything that comes before the request goes to the server.
Async<void> prepare(Door& door, Flight& flight, ClientWatch& watch) {
  RequestReport& report = flight.report;
  if (!door.is_settled) co_await wait_until_settled(door);
  report.reason = why_uncached(door, flight.request);
  if (!report.reason.empty()) {
    co_await take_any_slot(door, flight, watch);
    co_return;
  }
  Result<std::vector<uint32_t>> tokens = co_await tokens_of(door.api, flight.request);
  if (!tokens.ok() || tokens->empty()) {
    // The server will say what is wrong with it.
    report.reason = "tokenize";
    co_return;
  }
  if (door.may_change && door.is_ready()) co_await is_same_server(door);
  if (watch.is_gone()) co_return;
  if (!door.is_ready()) {
    report.reason = door.uncached.reason;
    co_return;
  }
  flight.store = door.store;
  flight.tokens = *std::move(tokens);
  report.looked_up = true;
  report.prompt_tokens = flight.tokens.size();
  co_await prepare_slot(door, flight, watch);
}

}  // namespace

OwnAnswer server_is_away(const Door& door, const std::string& why) {
  if (door.uncached.reason != "loading") return error_answer(http::status::bad_gateway, why);
  return error_answer(http::status::service_unavailable, "Loading model");
}

Async<Result<std::vector<uint32_t>>> tokens_of(ServerApi& api, const CompletionRequest& request) {
  if (request.tokens.has_value()) co_return *request.tokens;
  std::string text;
  if (request.text.has_value()) {
    text = *request.text;
  } else if (request.template_body.has_value()) {
    std::string body = *request.template_body;
    Result<std::string> prompt = co_await api.apply_template(std::move(body));
    if (!prompt.ok()) co_return prompt.status();
    text = *std::move(prompt);
  }
  Result<std::vector<uint32_t>> tokens = co_await api.tokenize(std::move(text));
  co_return tokens;
}

Async<bool> serve_completion(Door& door, ClientConnection& client, const RequestHead& head,
                             std::string body, Route route) {
  ClientWatch watch(client.socket);
  Flight flight;
  flight.request = read_completion_request(route, body, door.cache_prompt);
  flight.report.route = route;
  const auto store_header = head.find("x-kvkeep-store");
  flight.may_store = store_header == head.end() || store_header->value() != "off";
  co_await prepare(door, flight, watch);

  Exchange exchange(door.api.address());
  ExchangeResult result;
  const bool asked = !watch.is_gone();
  if (!asked) {
    result.end = ExchangeResult::End::kClientLeft;
  } else {
    if (flight.slot.has_value() && flight.request.honours_id_slot) {
      body = with_slot(body, flight.slot->slot());
    }
    const Status sent = co_await exchange.send(head, std::move(body), nullptr, nullptr);
    if (sent.ok()) {
      const Headers headers = headers_of(flight.report);
      result = co_await exchange.answer(client, head, headers, watch);
    } else {
      result.end = ExchangeResult::End::kServerFailed;
      result.error = sent.message();
    }
  }
  const std::optional<Timings> timings = find_timings(result.tail);
  finish_report(door, flight.report, result, timings);
  if (flight.slot.has_value()) {
    const bool answered =
        result.status / 100 == 2 || result.end == ExchangeResult::End::kClientLeft;
    if (!asked) {
      flight.slot->set_tokens(std::move(flight.held));
    } else if (answered && flight.store != nullptr && flight.may_store && door.is_ready()) {
      net::co_spawn(door.io, keep_and_count(door, std::move(flight), timings), net::detached);
    } else {
      flight.slot->set_tokens(known_content(flight, timings));
    }
  }
  if (result.end == ExchangeResult::End::kServerFailed && result.status == 0) {
    OwnAnswer sorry = server_is_away(door, result.error);
    co_return co_await send_own(client, head, std::move(sorry));
  }
  co_return result.keep_alive;
}

}  // namespace kvkeep::daemon
