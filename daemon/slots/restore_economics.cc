#include "daemon/slots/restore_economics.h"

#include <algorithm>
#include <cmath>

#include "daemon/report/words.h"
#include "kvkeep/size_string.h"

namespace kvkeep::daemon {
namespace {

constexpr double kMargin = 1.25;
constexpr uint64_t kPrefillTokensMin = 16;
constexpr double kPrefillTokensFull = 256;  // From here on a sample has its full weight.
constexpr double kPrefillWeight = 0.25;
constexpr double kRestoreDecay = 0.9;
constexpr double kStep = 4;  // The most by which a sample may differ from what was expected.
// A wrong idea of restores would never be corrected if it forbade them all.
constexpr uint64_t kForgottenAfter = 256;

bool is_time(double seconds) { return seconds > 0 && std::isfinite(seconds); }

double within_step(double sample, double expected) {
  return std::clamp(sample, expected / kStep, expected * kStep);
}

}  // namespace

void RestoreEconomics::note_prefill(uint64_t tokens, double seconds) {
  if (tokens < kPrefillTokensMin || !is_time(seconds)) return;
  const auto count = static_cast<double>(tokens);
  const double sample = seconds / count;
  if (prefill_per_token_ == 0) {
    prefill_per_token_ = sample;
  } else {
    const double weight = kPrefillWeight * std::min(1.0, count / kPrefillTokensFull);
    const double bounded = within_step(sample, prefill_per_token_);
    prefill_per_token_ += weight * (bounded - prefill_per_token_);
  }
  if (++prefills_since_restore_ >= kForgottenAfter) restores_ = {};
}

void RestoreEconomics::note_restore(uint64_t bytes, uint64_t tokens, double seconds) {
  if (bytes == 0 || tokens == 0 || !is_time(seconds)) return;
  prefills_since_restore_ = 0;
  const auto size = static_cast<double>(bytes);
  if (const std::optional<Cost> cost = restore_cost()) {
    const double expected = cost->fixed + cost->per_byte * size;
    if (expected > 0) seconds = within_step(seconds, expected);
  }
  const auto add = [](double* sum, double value) { *sum = *sum * kRestoreDecay + value; };
  add(&restores_.count, 1);
  add(&restores_.bytes, size);
  add(&restores_.seconds, seconds);
  add(&restores_.bytes_squared, size * size);
  add(&restores_.bytes_seconds, size * seconds);
}

std::optional<RestoreEconomics::Cost> RestoreEconomics::restore_cost() const {
  if (restores_.count == 0) return std::nullopt;
  const double mean_bytes = restores_.bytes / restores_.count;
  const double mean_seconds = restores_.seconds / restores_.count;
  const double variance = restores_.bytes_squared / restores_.count - mean_bytes * mean_bytes;
  // Sizes so alike that they tell nothing of a fixed part: small restores are then taken to be
  // cheap, so that they are tried.
  const Cost proportional{0, mean_seconds / mean_bytes};
  if (variance < 0.01 * mean_bytes * mean_bytes) return proportional;
  const double covariance = restores_.bytes_seconds / restores_.count - mean_bytes * mean_seconds;
  const double slope = std::max(0.0, covariance / variance);
  const double fixed = mean_seconds - slope * mean_bytes;
  return fixed < 0 ? proportional : Cost{fixed, slope};
}

RestoreEconomics::Verdict RestoreEconomics::judge(uint64_t tokens_gained,
                                                  uint64_t bytes_to_restore) const {
  const std::optional<Cost> cost = restore_cost();
  Verdict verdict;
  verdict.gain_seconds = prefill_per_token_ * static_cast<double>(tokens_gained);
  if (cost) {
    verdict.cost_seconds = cost->fixed + cost->per_byte * static_cast<double>(bytes_to_restore);
  }
  const bool known = cost && prefill_per_token_ > 0;
  const bool worth = !known || verdict.gain_seconds >= kMargin * verdict.cost_seconds;
  verdict.pays = tokens_gained > 0 && worth;
  return verdict;
}

std::optional<uint64_t> RestoreEconomics::threshold_tokens(uint64_t bytes_per_token) const {
  const std::optional<Cost> cost = restore_cost();
  if (!cost || prefill_per_token_ == 0) return std::nullopt;
  const double per_token = kMargin * cost->per_byte * static_cast<double>(bytes_per_token);
  const double gained_per_token = prefill_per_token_ - per_token;
  if (gained_per_token <= 0) return std::nullopt;
  const double tokens = std::ceil(kMargin * cost->fixed / gained_per_token);
  if (!(tokens < 1e15)) return std::nullopt;
  return std::max<uint64_t>(1, static_cast<uint64_t>(tokens));
}

std::string RestoreEconomics::explain() const {
  std::string text = "prefill speed unknown";
  if (prefill_per_token_ > 0) {
    const double speed = std::clamp(1 / prefill_per_token_, 0.0, 1e15);
    text = "prefill " + format_count(static_cast<uint64_t>(std::llround(speed))) + " tokens/s";
  }
  const std::optional<Cost> cost = restore_cost();
  if (!cost) return text + ", restore speed unknown";
  text += ", restore " + format_duration(cost->fixed);
  if (cost->per_byte <= 0) return text;
  const double speed = std::clamp(1 / cost->per_byte, 0.0, 1e18);
  return text + " and " + format_bytes(static_cast<uint64_t>(speed)) + "/s";
}

}  // namespace kvkeep::daemon
