#include "connectors/llama/slot_layout.h"

#include <gtest/gtest.h>

#include <limits>

#include "connectors/llama/slot_sample.h"

namespace kvkeep::llama {
namespace {

SlotLayout smollm2() {
  SlotLayout layout{2, 2, 1, false, {}, {}};
  layout.layers.assign(30, {1, 384, 1, 384, 0, 0});
  return layout;
}

TEST(SlotLayout, AFileIsAsLongAsServersWriteIt) {
  EXPECT_EQ(slot_file_bytes(smollm2(), 1031), 23'771'504u);
  EXPECT_EQ(slot_file_bytes(smollm2(), 0), 40u);
  EXPECT_EQ(bytes_per_token(smollm2()), 23'040u);
}

TEST(SlotLayout, ASampleIsAsLongAsItsLayoutSays) {
  for (const Sample& sample : all_samples()) {
    ASSERT_TRUE(check_layout(sample.layout).ok()) << check_layout(sample.layout).to_string();
    for (const uint64_t tokens : {0, 1, 65}) {
      EXPECT_EQ(slot_file_bytes(sample.layout, tokens), sample_file(sample, tokens).bytes.size())
          << sample.name;
    }
  }
}

TEST(SlotLayout, TheLargestSizesDoNotOverflow) {
  SlotLayout layout{4, kStreamsMax, 0, false, {{0, 0}}, {}};
  layout.layers.assign(kLayersMax, {8, kRowBytesMax, 8, kRowBytesMax, 0, 0});
  ASSERT_TRUE(check_layout(layout).ok());
  EXPECT_EQ(bytes_per_token(layout), uint64_t{1} << 31);
  EXPECT_GT(slot_file_bytes(layout, kTokensMax), kTokensMax << 31);
}

TEST(SlotLayout, WhatIsNotPortableIsInItsFields) {
  SlotLayout layout = smollm2();
  EXPECT_EQ(layout_fields(layout), (std::map<std::string, std::string>{{"slot_file", "2"},
                                                                       {"v_trans", "0"},
                                                                       {"k_rows", "f16:384 x30"},
                                                                       {"v_rows", "f16:384 x30"}}));
  layout.version = 4;
  layout.rotation = {64, 0};
  layout.v_transposed = true;
  layout.layers.assign(2, {8, 204, 1, 0, 2, 192});
  layout.layers[1].k_type = 99;
  EXPECT_EQ(layout_fields(layout),
            (std::map<std::string, std::string>{{"slot_file", "4"},
                                                {"v_trans", "1"},
                                                {"n_rot", "64, 0"},
                                                {"k_rows", "q8_0:204 x1, type-99:204 x1"},
                                                {"v_rows", "f16:2*192 x2"}}));
}

TEST(SlotLayout, StreamsAreNotAmongTheFields) {
  SlotLayout other = smollm2();
  other.streams = 1;
  other.stream = 0;
  EXPECT_EQ(layout_fields(other), layout_fields(smollm2()));
}

TEST(SlotLayout, TwoAreEqualWhicheverStreamTheyWereLearnedFrom) {
  SlotLayout other = smollm2();
  other.stream = 0;
  EXPECT_EQ(other, smollm2());
  other.streams = 1;
  EXPECT_NE(other, smollm2());
  other = smollm2();
  other.layers[29].v_row_bytes = 386;
  EXPECT_NE(other, smollm2());
}

TEST(SlotLayout, OnlyKnownVersionsPass) {
  for (const uint32_t version : {0u, 1u, 3u, 5u}) {
    SlotLayout layout = smollm2();
    layout.version = version;
    EXPECT_EQ(check_layout(layout).code(), Code::kUnimplemented) << version;
  }
}

TEST(SlotLayout, WhatContradictsItselfIsRefused) {
  const auto refused = [](auto change) {
    SlotLayout layout = smollm2();
    change(layout);
    return check_layout(layout).code() == Code::kInvalidArgument;
  };
  using L = SlotLayout;
  EXPECT_TRUE(refused([](L& l) { l.streams = 0; }));
  EXPECT_TRUE(refused([](L& l) { l.streams = kStreamsMax + 1; }));
  EXPECT_TRUE(refused([](L& l) { l.layers.resize(kLayersMax + 1, l.layers[0]); }));
  EXPECT_TRUE(refused([](L& l) { l.rotation = {0, 0}; }));
  EXPECT_TRUE(refused([](L& l) { l.version = 4; }));
  EXPECT_TRUE(refused([](L& l) { l.v_transposed = true; }));
  EXPECT_TRUE(refused([](L& l) { l.layers[3].k_row_bytes = 0; }));
  EXPECT_TRUE(refused([](L& l) { l.layers[3].k_row_bytes = 383; }));
  EXPECT_TRUE(refused([](L& l) { l.layers[3].v_row_bytes = kRowBytesMax + 2; }));
  EXPECT_TRUE(refused([](L& l) { l.layers[3].v_rows = 1; }));
}

TEST(SlotLayout, TransposedValuesAreRefusedUnlessTheirElementsAreThoseOfTheType) {
  SlotLayout layout = smollm2();
  layout.v_transposed = true;
  layout.layers.assign(1, {1, 384, 1, 0, 4, 192});
  EXPECT_EQ(check_layout(layout).code(), Code::kInvalidArgument);
  layout.layers[0].v_element_bytes = 2;
  EXPECT_TRUE(check_layout(layout).ok());
  layout.layers[0].v_element_bytes = layout.layers[0].v_rows = std::numeric_limits<uint32_t>::max();
  EXPECT_EQ(check_layout(layout).code(), Code::kInvalidArgument);
}

TEST(SlotLayout, TensorsAreOfElementsWhereTheyStandAlone) {
  SlotLayout layout = smollm2();
  layout.layers[0] = {8, 204, 30, 384, 0, 0};
  const auto [keys, values] = pair_forms(layout, 0, 7);
  EXPECT_EQ(keys.dtype, DType::kU8);
  EXPECT_EQ(keys.shape, (Shape{1, 1, 7, 204}));
  EXPECT_EQ(values.dtype, DType::kBF16);
  EXPECT_EQ(values.shape, (Shape{1, 1, 7, 192}));
  layout.v_transposed = true;
  layout.layers[0] = {8, 204, 0, 0, 4, 96};
  EXPECT_EQ(pair_forms(layout, 0, 7)[1].dtype, DType::kF32);
  EXPECT_EQ(pair_forms(layout, 0, 7)[1].shape, (Shape{1, 96, 7, 1}));
}

}  // namespace
}  // namespace kvkeep::llama
