#include <gtest/gtest.h>

#include "codec/meta_state.h"
#include "testing/block_builder.h"
#include "testing/block_compare.h"
#include "testing/proves.h"

namespace kvkeep {
namespace {

MetaValue n(int64_t number) { return {number}; }
MetaValue t(std::string text) { return {std::move(text)}; }

NState rows(uint64_t count) {
  const Tensor tensor = testing::payload(DType::kF16, {1, 2, count, 8}, 1);
  return make_pair_state(tensor, tensor);
}

MetaState clamped(const LayerState& layer, const std::string& type, MetaState meta,
                  Profile profile = Profile::kExtended) {
  return clamp_rotating({layer}, {type}, {std::move(meta)}, profile)[0];
}

::testing::AssertionResult same(const MetaState& a, const MetaState& b) {
  if (testing::equal(MetaValue{a}, MetaValue{b})) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << *meta_states_to_json({a}) << *meta_states_to_json({b});
}

TEST(RotatingClamp, FollowsTheContractsTable) {
  testing::proves("DEF-48");
  const std::vector<std::pair<MetaState, MetaState>> table = {
      {{n(0), n(8), n(9), n(9)}, {n(0), n(8), n(9), t("4")}},
      {{t("0"), t("8"), t("9"), t("9")}, {t("0"), t("8"), t("9"), t("4")}},
      {{n(0), n(8), n(9), n(9), n(1), n(2)}, {n(0), n(8), n(9), t("4")}},
      {{n(0), n(8), n(9), n(5)}, {n(0), n(8), n(9), t("4")}},
      {{n(0), n(8), n(9), n(4)}, {n(0), n(8), n(9), n(4)}},
      {{n(0), n(8), n(9)}, {n(0), n(8), n(9)}},
      {{n(0), n(8), n(9), t("9.7")}, {n(0), n(8), n(9), t("9.7")}},
      {{n(0), n(8), n(9), {9.7}}, {n(0), n(8), n(9), t("4")}},
      {{n(0), n(8), n(9), {4.9}}, {n(0), n(8), n(9), {4.9}}},
      {{n(0), n(8), n(9), {1e300}}, {n(0), n(8), n(9), t("4")}},
      {{n(0), n(8), n(9), {nullptr}}, {n(0), n(8), n(9), {nullptr}}},
      {{n(0), n(8), n(9), n(-9)}, {n(0), n(8), n(9), n(-9)}},
      {{n(0), n(8), n(9), t("99999999999999999999999")}, {n(0), n(8), n(9), t("4")}},
      {{n(0), n(8), n(9), t("-99999999999999999999999")},
       {n(0), n(8), n(9), t("-99999999999999999999999")}},
      {{n(0), n(8), n(9), t("")}, {n(0), n(8), n(9), t("")}},
      {{n(0), n(8), n(9), t("9x")}, {n(0), n(8), n(9), t("9x")}},
      {{n(0), n(8), n(9), t("+-9")}, {n(0), n(8), n(9), t("+-9")}},
      {{}, {}},
  };
  for (const auto& [given, written] : table) {
    EXPECT_TRUE(same(clamped(rows(4), "RotatingKVCache", given), written));
  }
}

TEST(RotatingClamp, TouchesRotatingLayersOnly) {
  const MetaState meta = {n(0), n(8), n(9), n(9)};
  const MetaState cut = {n(0), n(8), n(9), t("4")};
  for (const char* type : {"RotatingKVCache", "BatchRotatingKVCache", "BufferedRotatingKVCache"}) {
    EXPECT_TRUE(same(clamped(rows(4), type, meta), cut)) << type;
  }
  for (const char* type : {"KVCache", "PrefillReadyRotatingKVCache", "rotatingkvcache", ""}) {
    EXPECT_TRUE(same(clamped(rows(4), type, meta), meta)) << type;
  }
}

TEST(RotatingClamp, WantsAPairWhoseFirstElementHasRows) {
  const MetaState meta = {n(0), n(8), n(9), n(9)};
  NState state = rows(4);
  state.elements[0].v = Null{};
  EXPECT_TRUE(same(clamped(state, "RotatingKVCache", meta), meta));
  state = rows(4);
  std::get<Tensor>(state.elements[0].v).shape = {8, 16};
  EXPECT_TRUE(same(clamped(state, "RotatingKVCache", meta), meta));
  state = rows(4);
  state.elements.push_back(Element{Null{}});
  EXPECT_TRUE(same(clamped(state, "RotatingKVCache", meta), meta));
  EXPECT_TRUE(same(clamped(CacheList{{rows(4)}}, "RotatingKVCache", meta), meta));
}

TEST(RotatingClamp, LeavesTheSeedsNstateFormAlone) {
  testing::proves("DEF-48");
  NState state = rows(4);
  state.class_name = "RotatingKVCache";
  const MetaState meta = {n(0), n(8), n(9), n(9)};
  EXPECT_TRUE(same(clamped(state, "RotatingKVCache", meta, Profile::kSeedExact), meta));
  EXPECT_TRUE(same(clamped(state, "RotatingKVCache", meta), {n(0), n(8), n(9), t("4")}));
}

// The save of a window buffer whose write position is larger than the rows it holds, as it comes
// back from the image, and the ones that are left as they are.
TEST(RotatingClamp, ReachesWhatIsServedFromMemory) {
  testing::proves("DEF-48", "SAVE-06");
  const auto loaded = [](MetaState meta, uint64_t row_count) {
    testing::TestBlock block = testing::blk(1);
    block.input.layers[0] = rows(row_count);
    block.input.layer_types = {{"BufferedRotatingKVCache"}};
    block.input.meta_states = {{std::move(meta)}};
    const auto pool_options = [] {
      BufferPool::Options options;
      options.limit_bytes = 1 << 20;
      return options;
    }();
    const auto image =
        *encode_block(block.hash, block.input, testing::test_context(Profile::kExtended, block),
                      *BufferPool::create(pool_options));
    const LoadedBlock lent = Image::lend(image, Source::kPending);
    EXPECT_EQ(*lent.info.layer_types, std::vector<std::string>{"RotatingKVCache"});
    EXPECT_NE(lent.info.signature.find("[\"RotatingKVCache\"]"), std::string::npos);
    return (*lent.info.meta_states)[0];
  };
  EXPECT_TRUE(same(loaded({t("0"), t("1024"), t("60"), t("1024")}, 60),
                   {t("0"), t("1024"), t("60"), t("60")}));
  const MetaState fits = {t("0"), t("1024"), t("60"), t("60")};
  EXPECT_TRUE(same(loaded(fits, 60), fits));
  const MetaState six = {n(0), n(64), n(64), n(64), n(1), n(2)};
  EXPECT_TRUE(same(loaded(six, 64), six));
}

}  // namespace
}  // namespace kvkeep
