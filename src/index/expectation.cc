#include "index/expectation.h"

#include <algorithm>

#include "hash/signature.h"

namespace kvkeep {
namespace {

bool same_types(const std::optional<std::vector<std::string>>& a,
                const std::optional<std::vector<std::string>>& b) {
  if (a.has_value() != b.has_value()) return false;
  return a == b || canonical_types(*a) == canonical_types(*b);
}

// Blocks without TurboQuant layers need no depth (DEF-55).
bool needs_depth(const Expectation& expected) {
  return expected.turboquant_bits && expected.layer_types &&
         std::any_of(expected.layer_types->begin(), expected.layer_types->end(),
                     is_turboquant_type);
}

std::optional<MissReason> signature_mismatch(const Expectation& expected, const Layout& layout) {
  if (layout.signature.empty()) {
    return needs_depth(expected) ? std::optional(MissReason::kBits) : std::nullopt;
  }
  const std::optional<SignatureFields> stored = parse_signature(layout.signature);
  if (!stored) return MissReason::kLayout;
  if (!expected.model_name.empty() && stored->model_name != expected.model_name)
    return MissReason::kModel;
  if (expected.num_layers > 0 && stored->num_layers != expected.num_layers)
    return MissReason::kLayout;
  if (expected.block_size > 0 && stored->block_size != expected.block_size)
    return MissReason::kBlockSize;
  if (canonical_types(stored->layer_types) != canonical_types(*expected.layer_types)) {
    return MissReason::kLayout;
  }
  if (needs_depth(expected) && stored->turboquant_bits != expected.turboquant_bits) {
    return MissReason::kBits;
  }
  return std::nullopt;
}

// RUL-21: a block's own depth must agree with its signature's and with the expected one.
bool depth_contradicts(const Expectation& expected, const Layout& layout) {
  if (!layout.own_bits) return false;
  if (expected.turboquant_bits && *layout.own_bits != *expected.turboquant_bits) return true;
  const std::optional<double> recorded = signature_bits(layout.signature);
  return recorded && *recorded != *layout.own_bits;
}

}  // namespace

Expectation expectation_of(const Options& options) {
  Expectation expected;
  expected.model_name = options.model_name;
  expected.num_layers = options.num_layers;
  expected.block_size = options.block_size;
  if (options.layer_types && !options.layer_types->empty()) {
    expected.layer_types = storage_types(*options.layer_types);
  }
  expected.identity = identity_digest(options.identity);
  expected.require_digest = options.require_digest;
  return expected;
}

std::optional<MissReason> incompatibility(const Expectation& expected, const Layout& layout) {
  if (expected.require_digest && !layout.has_digest) return MissReason::kUndigested;
  if (expected.identity != layout.identity) return MissReason::kIdentity;
  const bool other_model = !expected.model_name.empty() && !layout.model_name.empty() &&
                           layout.model_name != expected.model_name;
  if (other_model) return MissReason::kModel;
  if (expected.num_layers > 0 && layout.num_layers > 0 &&
      layout.num_layers != expected.num_layers) {
    return MissReason::kLayout;
  }
  if (expected.block_size > 0 && layout.block_size != expected.block_size)
    return MissReason::kBlockSize;
  if (depth_contradicts(expected, layout)) return MissReason::kBits;
  if (!expected.layer_types) return std::nullopt;
  if (!same_types(expected.layer_types, layout.layer_types)) return MissReason::kLayout;
  return signature_mismatch(expected, layout);
}

std::optional<MissReason> staleness(const Expectation& expected, const Layout& layout) {
  if (!expected.layer_types || expected.model_name.empty()) return std::nullopt;
  if (layout.model_name != expected.model_name) return std::nullopt;
  if (!layout.layer_types) {
    return expected.turboquant_bits ? std::optional(MissReason::kBits) : std::nullopt;
  }
  if (!same_types(expected.layer_types, layout.layer_types)) return MissReason::kLayout;
  if (!needs_depth(expected)) return std::nullopt;
  const bool proven = signature_bits(layout.signature) == expected.turboquant_bits;
  if (!proven || depth_contradicts(expected, layout)) return MissReason::kBits;
  return std::nullopt;
}

bool depends_on_expectation(MissReason why) {
  switch (why) {
    case MissReason::kIdentity:
    case MissReason::kModel:
    case MissReason::kLayout:
    case MissReason::kBlockSize:
    case MissReason::kBits:
    case MissReason::kUndigested:
    case MissReason::kForgotten:
      return true;
    default:
      return false;
  }
}

std::optional<Refusal> contradiction(const Expectation& expected, const Layout& layout) {
  const bool other_model = !expected.model_name.empty() && !layout.model_name.empty() &&
                           layout.model_name != expected.model_name;
  if (other_model) return Refusal::kRefusedModel;
  const bool types_given = expected.layer_types && layout.layer_types;
  if (types_given && !same_types(expected.layer_types, layout.layer_types))
    return Refusal::kRefusedLayout;
  if (!expected.layer_types && expected.num_layers > 0 &&
      layout.num_layers != expected.num_layers) {
    return Refusal::kRefusedLayout;
  }
  if (expected.turboquant_bits && layout.own_bits &&
      *layout.own_bits != *expected.turboquant_bits) {
    return Refusal::kRefusedBits;
  }
  return std::nullopt;
}

}  // namespace kvkeep
