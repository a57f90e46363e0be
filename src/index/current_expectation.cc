#include "index/current_expectation.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "hash/signature.h"

namespace kvkeep {
namespace {

bool are_type_names(std::span<const std::string> types) {
  return !types.empty() && std::all_of(types.begin(), types.end(),
                                       [](const std::string& type) { return is_valid_utf8(type); });
}

}  // namespace

CurrentExpectation::CurrentExpectation(Expectation initial)
    : now_(std::make_shared<const Expectation>(std::move(initial))) {}

ExpectationPtr CurrentExpectation::get() const {
  MutexLock lock(mu_);
  return now_;
}

bool CurrentExpectation::is_current(const Expectation& seen) const {
  MutexLock lock(mu_);
  return now_->epoch == seen.epoch;
}

bool CurrentExpectation::adopt(std::span<const std::string> types) {
  if (!are_type_names(types)) return false;
  MutexLock lock(mu_);
  return !now_->layer_types && set(types, now_->turboquant_bits);
}

bool CurrentExpectation::replace(std::span<const std::string> types, std::optional<double> bits) {
  if (!are_type_names(types) || (bits && !std::isfinite(*bits))) return false;
  MutexLock lock(mu_);
  return set(types, bits);
}

// The list is taken as given, also where it only renames what was expected (SIG-09).
bool CurrentExpectation::set(std::span<const std::string> types, std::optional<double> bits) {
  auto next = std::make_shared<Expectation>(*now_);
  next->layer_types = storage_types({types.begin(), types.end()});
  next->turboquant_bits = bits;
  const bool changed = !now_->layer_types || bits != now_->turboquant_bits ||
                       canonical_types(*next->layer_types) != canonical_types(*now_->layer_types);
  if (changed) ++next->epoch;
  now_ = std::move(next);
  return changed;
}

bool CurrentExpectation::is_swept() const {
  MutexLock lock(mu_);
  return swept_epoch_ == now_->epoch;
}

void CurrentExpectation::mark_swept(const Expectation& seen) {
  MutexLock lock(mu_);
  swept_epoch_ = std::max(swept_epoch_, std::optional(seen.epoch));
}

}  // namespace kvkeep
