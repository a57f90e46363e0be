// Expectation: what blocks must be for a cache to serve them. Contract C.14 (COMPAT), RUL-18,
// RUL-21.
//
// Threads: plain values and a pure function.
#pragma once

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
};

Expectation expectation_of(const Options& options);

// Why blocks of this layout are not served; none if they are.
std::optional<MissReason> incompatibility(const Expectation& expected, const Layout& layout);

// What contradicts the expectation in a block about to be saved; none if nothing does (SAVE-28).
// `layout` is that of the block's encoded form.
std::optional<Refusal> contradiction(const Expectation& expected, const Layout& layout);

}  // namespace kvkeep
