#include "tier/compatibility.h"

#include <unordered_map>

#include "tier/removal.h"

namespace kvkeep {
namespace {

// One decision per layout, however many blocks share it.
class Decisions {
 public:
  using Decide = std::optional<MissReason> (*)(const Expectation&, const Layout&);
  Decisions(const Expectation& expected, Decide decide) : expected_(expected), decide_(decide) {}

  std::optional<MissReason> operator()(const LayoutPtr& layout) {
    const auto [known, is_new] = known_.try_emplace(layout);
    if (is_new) known->second = decide_(expected_, *layout);
    return known->second;
  }

 private:
  const Expectation& expected_;
  const Decide decide_;
  std::unordered_map<LayoutPtr, std::optional<MissReason>> known_;
};

std::optional<MissReason> staleness_of(const Entry& entry, Decisions& stale) {
  if (!entry.servable()) return std::nullopt;
  if (entry.hot != nullptr) return stale(entry.hot->layout);
  return stale(entry.pending != nullptr ? entry.pending->layout : entry.file.layout);
}

enum class Swept : uint8_t { kNothing, kWithdrawn, kLeased };

Swept withdraw_if_stale(CacheState& state, const BlockHash& hash, const Expectation& expected,
                        Decisions& stale) {
  Withdrawn withdrawn;
  {
    LockedEntry locked(state.index, hash);
    locked.wait_until_idle();
    if (locked.get() == nullptr || !state.expectation.is_current(expected)) return Swept::kNothing;
    const auto why = staleness_of(*locked.get(), stale);
    if (!why) return Swept::kNothing;
    if (locked.get()->leased(state.clock().mono())) return Swept::kLeased;
    withdrawn = withdraw(state, locked, hash, *why);
  }
  end_withdrawal(state, hash, std::move(withdrawn));
  return Swept::kWithdrawn;
}

enum class Forgotten : uint8_t { kStay, kReturn };

bool fits_again(const Entry& entry, Decisions& incompatible, Forgotten forgotten) {
  const BlockFile& file = entry.file;
  if (file.state != FileState::kIncompatible || entry.pending != nullptr) return false;
  if (entry.hot != nullptr) return false;
  if (file.layout == nullptr || !depends_on_expectation(file.why)) return false;
  if (file.why == MissReason::kForgotten && forgotten == Forgotten::kStay) return false;
  return !incompatible(file.layout);
}

// DEF-53: files that were tracked but not served, at the place that their last use gives them.
void restore_fitting(CacheState& state, const Expectation& expected, Forgotten forgotten) {
  Decisions incompatible(expected, incompatibility);
  const auto fits = [&](const Entry& entry) { return fits_again(entry, incompatible, forgotten); };
  for (const BlockHash& hash : state.index.keys_where(fits)) {
    LockedEntry locked(state.index, hash);
    if (locked.get() == nullptr || !state.expectation.is_current(expected)) continue;
    if (!fits(*locked.get())) continue;
    locked.get()->file.state = FileState::kDurable;
    locked.get()->file.why = MissReason::kAbsent;
  }
}

}  // namespace

bool adopt_layer_types(CacheState& state, std::span<const std::string> types) {
  if (!state.expectation.adopt(types)) return false;
  restore_fitting(state, *state.expectation.get(), Forgotten::kReturn);
  return true;
}

bool set_expected_layer_types(CacheState& state, std::span<const std::string> types,
                              std::optional<double> turboquant_bits) {
  if (!state.expectation.replace(types, turboquant_bits)) return false;
  restore_fitting(state, *state.expectation.get(), Forgotten::kReturn);
  return true;
}

size_t sweep_stale_layouts(CacheState& state) {
  const ExpectationPtr expected = state.expectation.get();
  if (!expected->layer_types || expected->model_name.empty()) return 0;
  if (state.expectation.is_swept()) return 0;
  Decisions stale(*expected, staleness);
  size_t dropped = 0;
  bool complete = true;  // Otherwise the next sweep goes on.
  const auto is_stale = [&](const Entry& entry) { return staleness_of(entry, stale).has_value(); };
  for (const BlockHash& hash : state.index.keys_where(is_stale)) {
    const Swept swept = withdraw_if_stale(state, hash, *expected, stale);
    dropped += swept == Swept::kWithdrawn ? 1 : 0;
    complete = complete && swept != Swept::kLeased;
  }
  // A file may fit that a cancelled write was to replace.
  restore_fitting(state, *expected, Forgotten::kStay);
  if (complete) state.expectation.mark_swept(*expected);
  state.emit(EventKind::kSweepDone, nullptr, 0, dropped);
  if (dropped > 0) {
    state.log(LogLevel::kInfo, std::to_string(dropped) + " blocks of other layers of \"" +
                                   expected->model_name + "\" are no longer served");
  }
  return dropped;
}

ExpectedLayout expected_layout(const CacheState& state) {
  const ExpectationPtr expected = state.expectation.get();
  return {expected->model_name,  expected->num_layers,      expected->block_size,
          expected->layer_types, expected->turboquant_bits, state.expectation.is_swept()};
}

// A cache that names no model may hold blocks of several: what one of them looks like says nothing
// about the next (docs/decisions/009-adoption.md). Nor does a block that will be refused.
void adopt_from(CacheState& state, const BlockInput& input) {
  const ExpectationPtr expected = state.expectation.get();
  if (expected->layer_types || expected->model_name.empty() || !input.layer_types) return;
  const bool other_model = !input.model_name.empty() && input.model_name != expected->model_name;
  const bool other_count = expected->num_layers > 0 && input.layers.size() != expected->num_layers;
  if (other_model || other_count || input.layer_types->size() != input.layers.size()) return;
  if (adopt_layer_types(state, *input.layer_types)) sweep_stale_layouts(state);
}

bool still_fits(const CacheState& state, const Layout& layout, const Expectation& seen) {
  if (state.expectation.is_current(seen)) return true;
  const ExpectationPtr now = state.expectation.get();
  return !contradiction(*now, layout) && !staleness(*now, layout);
}

}  // namespace kvkeep
