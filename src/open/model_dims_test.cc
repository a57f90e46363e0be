#include <gtest/gtest.h>

#include "kvkeep/scheduler.h"

namespace kvkeep {
namespace {

constexpr uint32_t kMany = 4'000'000'000;

TEST(ModelDims, KeysAndValuesOfAllLayersAreCounted) {
  const ModelDims dims{.num_layers = 32, .num_kv_heads = 8, .head_dim = 192};
  EXPECT_TRUE(dims.complete());
  EXPECT_EQ(dims.kv_bytes(1), 8u * 192 * 2 * 2 * 32);
  EXPECT_EQ(dims.kv_bytes(256), 256u * 196'608);
  EXPECT_EQ(dims.kv_bytes(0), 0u);
}

TEST(ModelDims, ElementsMayHaveAnotherSize) {
  const ModelDims dims{.num_layers = 2, .num_kv_heads = 1, .head_dim = 64, .dtype_size = 4};
  EXPECT_EQ(dims.kv_bytes(1), 1u * 64 * 4 * 2 * 2);
}

TEST(ModelDims, WhatIsNotKnownMayFollowFromTheAttentionHeads) {
  ModelDims dims{.num_layers = 1, .num_attention_heads = 16, .hidden_size = 2048};
  EXPECT_TRUE(dims.complete());
  EXPECT_EQ(dims.kv_bytes(1), 16u * 128 * 2 * 2);
  dims.num_kv_heads = 4;
  EXPECT_EQ(dims.kv_bytes(1), 4u * 128 * 2 * 2);
  dims.head_dim = 256;
  EXPECT_EQ(dims.kv_bytes(1), 4u * 256 * 2 * 2);
}

TEST(ModelDims, WithoutOneDimensionNothingIsKnown) {
  const ModelDims whole{.num_layers = 1, .num_kv_heads = 1, .head_dim = 1};
  ModelDims no_layers = whole, no_heads = whole, no_size = whole;
  no_layers.num_layers = 0;
  no_heads.num_kv_heads = 0;
  no_size.head_dim = 0;
  no_size.hidden_size = 64;  // Of how many heads?
  for (const ModelDims& dims : {no_layers, no_heads, no_size, ModelDims{}}) {
    EXPECT_FALSE(dims.complete());
    EXPECT_EQ(dims.kv_bytes(1), 0u);
  }
}

TEST(ModelDims, BytesOfATokenMayBeGiven) {
  ModelDims latent;
  latent.kv_bytes_per_token = 1'152;
  EXPECT_FALSE(latent.complete());
  EXPECT_EQ(latent.kv_bytes(3), 3'456u);
  latent.num_layers = latent.num_kv_heads = latent.head_dim = 1;
  EXPECT_EQ(latent.kv_bytes(3), 3'456u);
}

TEST(ModelDims, MoreThan64BitsAreTheMost) {
  const ModelDims dims{.num_layers = kMany, .num_kv_heads = kMany, .head_dim = kMany};
  EXPECT_EQ(dims.kv_bytes(1), UINT64_MAX);
  EXPECT_EQ(dims.kv_bytes(0), 0u);
}

}  // namespace
}  // namespace kvkeep
