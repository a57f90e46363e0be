// Expectation: what blocks must be for a cache to serve them. Contract C.14 (COMPAT), RUL-18,
// RUL-21.
//
// Threads: plain values and pure functions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "index/layout.h"
#include "kvkeep/options.h"
#include "kvkeep/reason.h"

namespace kvkeep {

struct Expectation {
  std::string model_name;                               // Empty: any.
  uint32_t num_layers = 0;                              // 0: any.
  uint32_t block_size = 0;                              // 0: any.
  std::optional<std::vector<std::string>> layer_types;  // As stored (after the alias on save).
  std::optional<double> turboquant_bits;
  std::optional<std::string> identity;  // Digest; absent: only blocks without one.
  bool require_digest = false;
  // Of two expectations of one cache, equal where both are met by the same blocks. Starts at 0.
  uint64_t epoch = 0;
};
using ExpectationPtr = std::shared_ptr<const Expectation>;

Expectation expectation_of(const Options& options);

// Why blocks of this layout are not served; none if they are.
std::optional<MissReason> incompatibility(const Expectation& expected, const Layout& layout);

// Why a sweep takes blocks of this layout out of service; none if they stay. It is milder than
// incompatibility(): blocks without a model name stay, and where no depth is expected those without
// layer types (SWEEP-05 to 07). Blocks that are not incompatible are never stale.
std::optional<MissReason> staleness(const Expectation& expected, const Layout& layout);

// Whether a file that is not served because of `why` may be served under another expectation.
bool depends_on_expectation(MissReason why);

// What contradicts the expectation in a block about to be saved; none if nothing does (SAVE-28).
// `layout` is that of the block's encoded form.
std::optional<Refusal> contradiction(const Expectation& expected, const Layout& layout);

}  // namespace kvkeep
