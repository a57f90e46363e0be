#include "hash/signature.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "hash/sha256.h"
#include "testing/proves.h"

namespace kvkeep {
namespace {

using Types = std::optional<std::vector<std::string>>;
using MetaStates = std::optional<std::vector<MetaState>>;

MetaState meta(int64_t tokens, MetaValue bits) {
  return {MetaValue{tokens}, std::move(bits), MetaValue{int64_t{0}}};
}

TEST(Signature, WithoutDepthIsTheFourBaseKeys) {
  testing::proves("SIG-01");
  EXPECT_EQ(
      make_signature({2048, {"KVCache"}, "m", 4, {}}),
      R"({"block_size":2048,"layer_cache_types":["KVCache"],"model_name":"m","num_layers":4})");
  EXPECT_EQ(make_signature({}),
            R"({"block_size":0,"layer_cache_types":[],"model_name":"","num_layers":0})");
}

TEST(Signature, WritesTheDepthAsADouble) {
  testing::proves("SIG-02");
  const auto six = make_signature({64, {}, "m", 2, 6.0});
  EXPECT_NE(six.find(",\"turboquant_kv_bits\":6.0}"), std::string::npos) << six;
  EXPECT_EQ(make_signature({64, {"TurboQuantKVCache"}, "\u30e2\u30c7\u30eb/x\"y", 2, 3.5}),
            R"({"block_size":64,"layer_cache_types":["TurboQuantKVCache"],)"
            R"("model_name":"\u30e2\u30c7\u30eb/x\"y","num_layers":2,"turboquant_kv_bits":3.5})");
}

TEST(Signature, IsEmptyForWhatCannotBeWritten) {
  EXPECT_EQ(make_signature({1, {}, "\xff", 1, {}}), "");
  EXPECT_EQ(make_signature({1, {"\xff"}, "", 1, {}}), "");
  EXPECT_EQ(make_signature({1, {}, "", 1, 1.0 / 0.0}), "");
}

TEST(Signature, ReadsBackWhatItWrote) {
  const SignatureFields fields{256, {"A", "\u00e9"}, "org/\U0001F600", 2, 3.5};
  const auto parsed = parse_signature(make_signature(fields));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->block_size, fields.block_size);
  EXPECT_EQ(parsed->layer_types, fields.layer_types);
  EXPECT_EQ(parsed->model_name, fields.model_name);
  EXPECT_EQ(parsed->num_layers, fields.num_layers);
  EXPECT_EQ(parsed->turboquant_bits, fields.turboquant_bits);
}

TEST(Signature, ReadsNoFieldsFromAnythingElse) {
  testing::proves("COMPAT-09", "DEF-50");
  for (const std::string_view bad :
       {"", "123", "[1, 2]", "null", "{not json", "{} {}", R"({"block_size":"64"})",
        R"({"block_size":-1})", R"({"block_size":4294967296})", R"({"block_size":1.5})",
        R"({"num_layers":null})", R"({"model_name":7})", R"({"layer_cache_types":"KVCache"})",
        R"({"layer_cache_types":[1]})", R"({"turboquant_kv_bits":[]})",
        R"({"turboquant_kv_bits":"six"})", R"({"block_size":1,"block_size":1})",
        R"({"model_name":"\ud800"})"}) {
    EXPECT_FALSE(parse_signature(bad)) << bad;
  }
  EXPECT_TRUE(parse_signature("{}"));
  EXPECT_TRUE(parse_signature(R"({"other":[{}],"turboquant_kv_bits":null})"));
}

TEST(Signature, DepthIsNoneForAnythingMalformed) {
  testing::proves("SIG-03");
  for (const std::string_view bad :
       {"123", "[1, 2]", "null", "{not json", "", "{}", R"({"turboquant_kv_bits":null})",
        R"({"turboquant_kv_bits":[6]})", R"({"turboquant_kv_bits":"x"})"}) {
    EXPECT_FALSE(signature_bits(bad)) << bad;
  }
  EXPECT_EQ(signature_bits(R"({"turboquant_kv_bits":6})"), 6.0);
  EXPECT_EQ(signature_bits(R"({"turboquant_kv_bits":" 3.5 "})"), 3.5);
}

TEST(BlockBits, AreThoseOfTheFirstLayerThatHasThem) {
  testing::proves("TQ-01");
  const Types types = {{"KVCache", "TurboQuantKVCache", "BatchTurboQuantKVCache"}};
  const MetaStates states = {{meta(1, {9.0}), {}, meta(256, {4.0})}};
  EXPECT_EQ(block_bits(types, states), 4.0);
  EXPECT_FALSE(block_bits({{"KVCache", "KVCache", "KVCache"}}, states));
  EXPECT_FALSE(block_bits(types, {}));
  EXPECT_FALSE(block_bits({}, states));
  EXPECT_FALSE(block_bits(types, {{MetaState{}, MetaState{}, MetaState{}}}));
}

TEST(BlockBits, ConvertNumbersAndNumericTexts) {
  const Types types = {{"TurboQuantKVCache", "TurboQuantKVCache"}};
  const auto bits = [&](MetaValue value) {
    return block_bits(types, {{meta(1, std::move(value)), meta(1, {8.0})}});
  };
  EXPECT_EQ(bits({int64_t{6}}), 6.0);
  EXPECT_EQ(bits({std::string("3.5")}), 3.5);
  EXPECT_FALSE(bits({std::string("many")})) << "the search stops at a depth that is no number";
  EXPECT_FALSE(bits({nullptr}));
  EXPECT_FALSE(bits({1.0 / 0.0}));
}

TEST(TypeNames, AliasOnSaveAndCanonicalOnCompareAreTwoTables) {
  testing::proves("RUL-24");
  EXPECT_EQ(storage_types({"BufferedRotatingKVCache", "SizedArraysCache"}),
            (std::vector<std::string>{"RotatingKVCache", "SizedArraysCache"}));
  EXPECT_EQ(canonical_types({"SizedArraysCache", "PrefillReadyRotatingKVCache",
                             "BatchTurboQuantKVCache", "BufferedRotatingKVCache", "KVCache"}),
            (std::vector<std::string>{"ArraysCache", "RotatingKVCache", "TurboQuantKVCache",
                                      "BufferedRotatingKVCache", "KVCache"}));
}

TEST(Identity, IsTheDigestOfItsCompactSortedJson) {
  testing::proves("RUL-18");
  Sha256 sha;
  sha.start();
  sha.add(as_byte_span(R"({"adapter":"","model":"org/\u30e2"})"));
  EXPECT_EQ(identity_digest({{"model", "org/\u30e2"}, {"adapter", ""}}), to_hex(*sha.finish()));
  EXPECT_FALSE(identity_digest({}));
  EXPECT_NE(identity_digest({{"a", "\xff"}}), identity_digest({{"a", "\xfe"}}));
}

}  // namespace
}  // namespace kvkeep
