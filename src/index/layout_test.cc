#include "index/layout.h"

#include <gtest/gtest.h>

namespace kvkeep {
namespace {

BlockHeader header_with_bits(double bits) {
  BlockHeader header{*BlockHash::from_hex("00"), {}, {}, {}, true};
  header.info.model_name = "m";
  header.info.layer_types = {{"TurboQuantKVCache"}};
  header.info.meta_states = {
      {MetaState{MetaValue{int64_t{8}}, MetaValue{bits}, MetaValue{int64_t{0}}}}};
  return header;
}

TEST(LayoutTable, EqualHeadersHaveOneLayout) {
  LayoutTable table;
  const LayoutPtr a = table.intern(header_with_bits(3.5));
  EXPECT_EQ(table.intern(header_with_bits(3.5)), a);
  EXPECT_NE(table.intern(header_with_bits(4)), a);
}

TEST(LayoutTable, DepthsThatPrintAlikeAreStillTwoLayouts) {
  LayoutTable table;
  const LayoutPtr a = table.intern(header_with_bits(3.00000001));
  const LayoutPtr b = table.intern(header_with_bits(3.00000002));
  EXPECT_NE(a, b);
  EXPECT_EQ(table.intern(header_with_bits(3.00000001)), a);
}

}  // namespace
}  // namespace kvkeep
