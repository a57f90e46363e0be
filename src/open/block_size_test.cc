#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kvkeep/scheduler.h"

namespace kvkeep {
namespace {

using Layers = std::vector<LayerCache>;

LayerCache plain(const std::string& name) { return {name}; }
LayerCache rotating(uint32_t window, const std::string& name = "RotatingKVCache") {
  return {name, window};
}
LayerCache list_of(Layers parts) { return {"CacheList", 0, std::move(parts)}; }

uint32_t size_of(uint32_t configured, const Layers& layers) {
  const auto size = effective_block_size(configured, layers);
  EXPECT_TRUE(size.ok()) << size.status().to_string();
  return size.ok() ? *size : 0;
}

TEST(EffectiveBlockSize, IsAsConfiguredForKeysAndValuesAlone) {
  EXPECT_EQ(size_of(256, {}), 256u);
  EXPECT_EQ(size_of(1024, {plain("KVCache"), list_of({plain("KVCache")})}), 1024u);
}

TEST(EffectiveBlockSize, IsALargeWindow) {
  for (const uint32_t window : {512, 513, 1024, 4096}) {
    EXPECT_EQ(size_of(256, {plain("KVCache"), rotating(window)}), window);
  }
}

TEST(EffectiveBlockSize, IsTheFirstMultipleOfASmallWindowFrom512) {
  EXPECT_EQ(size_of(256, {rotating(128)}), 512u);
  EXPECT_EQ(size_of(256, {rotating(500)}), 1000u);
  for (uint32_t window = 1; window < 512; ++window) {
    const uint32_t size = size_of(2048, {rotating(window)});
    ASSERT_EQ(size % window, 0u);
    ASSERT_GE(size, 512u);
    ASSERT_LT(size, 512 + window);
  }
}

TEST(EffectiveBlockSize, EveryRotatingCacheHasAWindow) {
  for (const char* name : {"RotatingKVCache", "BatchRotatingKVCache", "BufferedRotatingKVCache",
                           "PrefillReadyRotatingKVCache"}) {
    EXPECT_EQ(size_of(256, {rotating(700, name)}), 700u) << name;
  }
}

TEST(EffectiveBlockSize, IsAPrefillStepForRecurrentLayers) {
  for (const char* name : {"ArraysCache", "SizedArraysCache"}) {
    EXPECT_EQ(size_of(256, {plain("KVCache"), plain(name)}), 2048u) << name;
  }
  EXPECT_EQ(size_of(4096, {plain("ArraysCache")}), 4096u);
}

TEST(EffectiveBlockSize, LooksIntoLists) {
  EXPECT_EQ(size_of(256, {list_of({plain("KVCache"), list_of({plain("ArraysCache")})})}), 2048u);
  EXPECT_EQ(size_of(256, {list_of({rotating(600)}), plain("ArraysCache")}), 600u);
}

TEST(EffectiveBlockSize, RefusesWhatNoSizeSuits) {
  struct Case {
    uint32_t configured;
    Layers layers;
    std::string word;
  };
  const std::vector<Case> cases = {
      {256, {rotating(512), rotating(1024)}, "512 and 1024"},
      {256, {rotating(512), list_of({rotating(128)})}, "512 and 128"},
      {256, {rotating(0)}, "window of 0"},
      {0, {}, "configured"},
  };
  for (const Case& c : cases) {
    const Status status = effective_block_size(c.configured, c.layers).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << c.word;
    EXPECT_NE(status.message().find(c.word), std::string::npos) << status.message();
  }
  EXPECT_EQ(size_of(256, {rotating(512), rotating(512)}), 512u);
}

}  // namespace
}  // namespace kvkeep
