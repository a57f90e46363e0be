#include "daemon/slot_keeping.h"

#include <algorithm>

#include "daemon/background.h"
#include "daemon/http/pool.h"
#include "daemon/slots/mapped_file.h"
#include "daemon/startup.h"

namespace kvkeep::daemon {
namespace {

// Whether the slot holds a full block that is not stored yet. Where the server did not say how many
// tokens it generated (the client left), it is saved.
bool is_worth_saving(const Door& door, const Flight& flight,
                     const std::optional<Timings>& timings) {
  const uint64_t block = flight.store->settings().block_size;
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
  if (flight.store->is_whole()) return flight.tokens.size() >= block;
  return tokens / block > flight.stored_tokens / block;
}

// Compares what a slot holds with what was foreseen for it.
void check_template(Door& door, const Flight& flight, std::span<const uint32_t> saved) {
  const uint64_t same = common_prefix(saved, flight.tokens);
  const bool is_right = same == std::min<uint64_t>(saved.size(), flight.tokens.size());
  // The server took another slot, which it may where a request cannot name one.
  if (std::equal(saved.begin(), saved.end(), flight.held.begin(), flight.held.end())) return;
  if (!is_right) ++door.tally.template_differs;
  const Route route = flight.request.route;
  if (route != Route::kMessages && route != Route::kResponses) return;
  Forecast& forecast = route == Route::kMessages ? door.messages : door.responses;
  is_right ? forecast.note_right() : forecast.note_wrong();
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

}  // namespace

std::vector<uint32_t> known_content(const Flight& flight, const std::optional<Timings>& timings) {
  const bool whole = flight.store != nullptr && flight.store->is_whole();
  if (whole) return {};  // What it has generated is not known.
  if (timings.has_value()) return flight.tokens;
  const auto same = common_prefix(flight.held, flight.tokens);
  return {flight.tokens.begin(), flight.tokens.begin() + same};
}

Async<void> keep_slot(Door& door, Flight flight, std::optional<Timings> timings) {
  const Running running(door.saves_running);
  co_await keep(door, std::move(flight), timings);
}

}  // namespace kvkeep::daemon
