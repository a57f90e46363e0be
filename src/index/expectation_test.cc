#include "index/expectation.h"

#include <gtest/gtest.h>

#include "hash/signature.h"
#include "testing/proves.h"

namespace kvkeep {
namespace {

using testing::proves;
using Types = std::vector<std::string>;

Layout layout_of(const std::string& model, Types types, std::optional<double> bits = {}) {
  Layout layout;
  layout.model_name = model;
  layout.num_layers = static_cast<uint32_t>(types.size());
  layout.block_size = 16;
  layout.signature = make_signature({16, types, model, layout.num_layers, bits});
  layout.layer_types = std::move(types);
  layout.has_digest = true;
  return layout;
}

Expectation expect(const std::string& model, std::optional<Types> types = {}) {
  Expectation expected;
  expected.model_name = model;
  expected.layer_types = std::move(types);
  return expected;
}

TEST(Expectation, NothingExpectedAcceptsEveryReadableBlock) {
  proves("COMPAT-05", "COMPAT-06");
  EXPECT_EQ(incompatibility({}, layout_of("any", {"KVCache"})), std::nullopt);
  EXPECT_EQ(incompatibility(expect("m"), layout_of("", {"KVCache"})), std::nullopt);
}

TEST(Expectation, EachFieldThatDiffersIsNamed) {
  proves("COMPAT-01", "COMPAT-02", "COMPAT-03");
  const Layout layout = layout_of("m", {"KVCache", "KVCache"});
  EXPECT_EQ(incompatibility(expect("n"), layout), MissReason::kModel);
  Expectation layers;
  layers.num_layers = 3;
  EXPECT_EQ(incompatibility(layers, layout), MissReason::kLayout);
  Expectation size;
  size.block_size = 32;
  EXPECT_EQ(incompatibility(size, layout), MissReason::kBlockSize);
  size.block_size = 16;
  EXPECT_EQ(incompatibility(size, layout), std::nullopt);
}

TEST(Expectation, LayerTypesAreComparedCanonically) {
  proves("COMPAT-04", "COMPAT-08");
  const auto expected = expect("m", Types{"ArraysCache", "RotatingKVCache"});
  EXPECT_EQ(incompatibility(expected, layout_of("m", {"SizedArraysCache", "RotatingKVCache"})),
            std::nullopt);
  EXPECT_EQ(
      incompatibility(expected, layout_of("m", {"ArraysCache", "PrefillReadyRotatingKVCache"})),
      std::nullopt);
  EXPECT_EQ(incompatibility(expected, layout_of("m", {"ArraysCache", "BufferedRotatingKVCache"})),
            MissReason::kLayout);
  EXPECT_EQ(incompatibility(expected, layout_of("m", {"KVCache", "KVCache"})), MissReason::kLayout);
  Layout untyped = layout_of("m", {"ArraysCache", "RotatingKVCache"});
  untyped.layer_types.reset();
  EXPECT_EQ(incompatibility(expected, untyped), MissReason::kLayout);
}

TEST(Expectation, SignaturesThatAreNotObjectsAreIncompatible) {
  proves("COMPAT-07", "COMPAT-09", "DEF-50");
  const auto expected = expect("m", Types{"KVCache"});
  Layout layout = layout_of("m", {"KVCache"});
  for (const char* signature : {"123", "[1, 2]", "null", "{not json", "{\"model_name\":5}"}) {
    layout.signature = signature;
    EXPECT_EQ(incompatibility(expected, layout), MissReason::kLayout) << signature;
  }
  layout.signature = "";
  EXPECT_EQ(incompatibility(expected, layout), std::nullopt);
}

TEST(Expectation, BitDepthMustBeProvenWhereOneIsExpected) {
  proves("TQ-02", "TQ-03", "TQ-06", "RUL-21");
  auto expected = expect("m", Types{"TurboQuantKVCache"});
  EXPECT_EQ(incompatibility(expected, layout_of("m", {"TurboQuantKVCache"}, 4.0)), std::nullopt);
  expected.turboquant_bits = 6.0;
  EXPECT_EQ(incompatibility(expected, layout_of("m", {"BatchTurboQuantKVCache"}, 6.0)),
            std::nullopt);
  EXPECT_EQ(incompatibility(expected, layout_of("m", {"TurboQuantKVCache"}, 4.0)),
            MissReason::kBits);
  EXPECT_EQ(incompatibility(expected, layout_of("m", {"TurboQuantKVCache"})), MissReason::kBits);
  Layout contradictory = layout_of("m", {"TurboQuantKVCache"}, 6.0);
  contradictory.own_bits = 4.0;
  EXPECT_EQ(incompatibility(expected, contradictory), MissReason::kBits);
  EXPECT_EQ(incompatibility({}, contradictory), MissReason::kBits);
}

TEST(Expectation, BlocksWithoutTurboQuantLayersNeedNoDepth) {
  proves("DEF-55");
  auto expected = expect("m", Types{"KVCache"});
  expected.turboquant_bits = 6.0;
  Layout layout = layout_of("m", {"KVCache"});
  EXPECT_EQ(incompatibility(expected, layout), std::nullopt);
  EXPECT_EQ(staleness(expected, layout), std::nullopt);
  layout.signature = "";
  EXPECT_EQ(incompatibility(expected, layout), std::nullopt);
}

TEST(Expectation, ASweepTakesOtherLayersOfTheSameModelOnly) {
  auto expected = expect("m", Types{"ArraysCache"});
  Layout other = layout_of("m", {"KVCache"});
  EXPECT_EQ(staleness(expected, other), MissReason::kLayout);
  EXPECT_EQ(staleness(expect("m"), other), std::nullopt);
  EXPECT_EQ(staleness(expect("", Types{"ArraysCache"}), other), std::nullopt);
  other.model_name = "n";
  EXPECT_EQ(staleness(expected, other), std::nullopt);
  other.model_name = "";
  EXPECT_EQ(staleness(expected, other), std::nullopt);
}

TEST(Expectation, WhatIsNotIncompatibleIsNeverStale) {
  const Types types[] = {{"KVCache"}, {"ArraysCache"}, {"TurboQuantKVCache"}};
  size_t stale = 0;
  for (const Types& wanted : types) {
    for (const Types& stored : types) {
      for (const auto bits : {std::optional<double>(), std::optional(4.0), std::optional(6.0)}) {
        for (const char* model : {"m", "n", ""}) {
          auto expected = expect("m", wanted);
          expected.turboquant_bits = 6.0;
          Layout layout = layout_of(model, stored, bits);
          for (const bool untyped : {false, true}) {
            if (untyped) layout.layer_types.reset();
            if (!staleness(expected, layout)) continue;
            ++stale;
            EXPECT_NE(incompatibility(expected, layout), std::nullopt);
          }
        }
      }
    }
  }
  EXPECT_GT(stale, 0u);
}

TEST(Expectation, IdentityMustBeTheSameOrAbsentOnBothSides) {
  proves("RUL-18");
  Options options;
  options.identity = {{"adapter", "a1"}};
  const Expectation expected = expectation_of(options);
  Layout layout = layout_of("m", {"KVCache"});
  EXPECT_EQ(incompatibility(expected, layout), MissReason::kIdentity);
  layout.identity = identity_digest({{"adapter", "a2"}});
  EXPECT_EQ(incompatibility(expected, layout), MissReason::kIdentity);
  EXPECT_EQ(incompatibility({}, layout), MissReason::kIdentity);
  layout.identity = identity_digest({{"adapter", "a1"}});
  EXPECT_EQ(incompatibility(expected, layout), std::nullopt);
}

TEST(Expectation, ADigestCanBeRequired) {
  proves("RUL-16");
  Options options;
  options.require_digest = true;
  Layout layout = layout_of("m", {"KVCache"});
  layout.has_digest = false;
  EXPECT_EQ(incompatibility(expectation_of(options), layout), MissReason::kUndigested);
  EXPECT_EQ(incompatibility({}, layout), std::nullopt);
}

TEST(Expectation, AnExpectedAliasMeansTheStoredName) {
  proves("SIG-13", "DEF-54");
  Options options;
  options.layer_types = Types{"BufferedRotatingKVCache"};
  EXPECT_EQ(expectation_of(options).layer_types, Types{"RotatingKVCache"});
  EXPECT_EQ(incompatibility(expectation_of(options), layout_of("m", {"RotatingKVCache"})),
            std::nullopt);
}

TEST(Expectation, SavesThatContradictItAreNamed) {
  proves("SAVE-28", "DEF-51");
  Expectation expected = expect("m", Types{"KVCache", "KVCache"});
  expected.num_layers = 4;
  EXPECT_EQ(contradiction(expected, layout_of("other", {"KVCache", "KVCache"})),
            Refusal::kRefusedModel);
  EXPECT_EQ(contradiction(expected, layout_of("m", {"KVCache", "ArraysCache"})),
            Refusal::kRefusedLayout);
  EXPECT_EQ(contradiction(expected, layout_of("m", {"KVCache", "KVCache"})), std::nullopt);
  expected.layer_types.reset();
  EXPECT_EQ(contradiction(expected, layout_of("m", {"KVCache", "KVCache"})),
            Refusal::kRefusedLayout);
  expected = expect("m");
  expected.turboquant_bits = 6;
  Layout bits = layout_of("m", {"TurboQuantKVCache"}, 4.0);
  bits.own_bits = 4.0;
  EXPECT_EQ(contradiction(expected, bits), Refusal::kRefusedBits);
}

}  // namespace
}  // namespace kvkeep
