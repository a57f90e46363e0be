// CurrentExpectation: what a cache expects of blocks now. Contract C.14 (SIG-04 to SIG-13).
//
// Whoever decides about a block takes one snapshot and stays with it; is_current() tells at the end
// whether the decision still stands (RUL-48).
//
// Threads: any thread. mu_ is a leaf lock, taken under a shard's lock.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/mutex.h"
#include "index/expectation.h"

namespace kvkeep {

class CurrentExpectation {
 public:
  explicit CurrentExpectation(Expectation initial);

  // Never null.
  ExpectationPtr get() const KVKEEP_EXCLUDES(mu_);
  // False once blocks may fit that did not fit `seen`, or the other way round.
  bool is_current(const Expectation& seen) const KVKEEP_EXCLUDES(mu_);

  // Expects these layer types if none are expected yet. True if they are from now on. A list that
  // is empty or not UTF-8 changes nothing.
  bool adopt(std::span<const std::string> types) KVKEEP_EXCLUDES(mu_);
  // Expects these instead, and this depth or none. True if blocks may fit differently from now on.
  // A list as above or a depth that is not finite changes nothing.
  bool replace(std::span<const std::string> types, std::optional<double> bits) KVKEEP_EXCLUDES(mu_);

  // Whether a sweep has been made for the expectation in force.
  bool is_swept() const KVKEEP_EXCLUDES(mu_);
  // A sweep for `seen` has been made.
  void mark_swept(const Expectation& seen) KVKEEP_EXCLUDES(mu_);

 private:
  bool set(std::span<const std::string> types, std::optional<double> bits) KVKEEP_REQUIRES(mu_);

  mutable Mutex mu_;
  ExpectationPtr now_ KVKEEP_GUARDED_BY(mu_);
  std::optional<uint64_t> swept_epoch_ KVKEEP_GUARDED_BY(mu_);
};

}  // namespace kvkeep
