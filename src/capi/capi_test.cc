// The C API is tested by a C program; here it is run.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "kvkeep/c.h"
#include "kvkeep/kvkeep.h"
#include "testing/proves.h"
#include "testing/temp_dir.h"

namespace kvkeep {
namespace {

struct Ended {
  int status = -1;
  std::string said;
};

Ended run_c_program(const std::filesystem::path& store) {
  std::string command = KVKEEP_C_PROGRAM;
  command.append(" '").append(store.string()).append("' 2>&1");
  FILE* pipe = ::popen(command.c_str(), "r");
  Ended ended;
  std::array<char, 4096> part{};
  for (size_t got = 0; (got = std::fread(part.data(), 1, part.size(), pipe)) > 0;) {
    ended.said.append(part.data(), got);
  }
  ended.status = ::pclose(pipe);
  return ended;
}

TEST(CApi, ServesACProgramThatSavesReopensLoadsAndMisusesIt) {
  testing::proves("RUL-19", "RUL-35");
  const testing::TempDir dir;
  const Ended ended = run_c_program(dir.path() / "store");
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.said, "");
}

TEST(CApi, ShowsNestedStatesAsUnimplementedAndTheRestOfTheBlock) {
  const testing::TempDir dir;
  Options options;
  options.cache_dir = dir.path();
  options.max_size_bytes = 1 << 20;
  const std::vector<std::byte> bytes(4);
  const Tensor tensor{DType::kU8, {4}, {nullptr, bytes}, {}};
  BlockInput input;
  input.layers = {make_pair_state(tensor, tensor), NState{"", {{ElementTuple{{{tensor}}}}}},
                  CacheList{{make_pair_state(tensor, tensor)}}};
  input.layer_types = {"KVCache", "Other", "CacheList"};
  input.token_count = 1;
  {
    auto cache = TieredBlockCache::open(options);
    ASSERT_TRUE(cache.ok());
    ASSERT_TRUE((*cache)->save_block(*BlockHash::from_hex("aa"), std::move(input)).ok());
  }

  kvkeep_options c_options{};
  c_options.struct_size = sizeof c_options;
  c_options.cache_dir = dir.path().c_str();
  c_options.max_size_bytes = 1 << 20;
  kvkeep_cache* cache = nullptr;
  ASSERT_EQ(kvkeep_open(&c_options, &cache), KVKEEP_OK);
  kvkeep_block* block = nullptr;
  ASSERT_EQ(kvkeep_load(cache, {"\xaa", 1}, &block), KVKEEP_OK);
  kvkeep_layer layer;
  EXPECT_EQ(kvkeep_block_num_layers(block), 3u);
  EXPECT_EQ(kvkeep_block_layer(block, 0, &layer), KVKEEP_OK);
  EXPECT_EQ(kvkeep_block_layer(block, 1, &layer), KVKEEP_UNIMPLEMENTED);
  EXPECT_EQ(layer.tensors, nullptr);
  EXPECT_EQ(kvkeep_block_layer(block, 2, &layer), KVKEEP_UNIMPLEMENTED);
  kvkeep_block_free(block);
  kvkeep_cache_free(cache);
}

TEST(CApi, CutsLongMessagesBetweenCharacters) {
  kvkeep_options options{};
  options.struct_size = sizeof options;
  const std::string name(600, 'x');
  const kvkeep_field twice[] = {{name.c_str(), ""}, {name.c_str(), ""}};
  options.identity = twice;
  options.num_identity = 2;
  kvkeep_cache* cache = nullptr;
  EXPECT_EQ(kvkeep_open(&options, &cache), KVKEEP_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(kvkeep_error_message()).size(), 511u);

  std::string wide = "x";
  while (wide.size() < 600) wide += "é";
  const kvkeep_field wide_twice[] = {{wide.c_str(), ""}, {wide.c_str(), ""}};
  options.identity = wide_twice;
  EXPECT_EQ(kvkeep_open(&options, &cache), KVKEEP_INVALID_ARGUMENT);
  const std::string message = kvkeep_error_message();
  EXPECT_GE(message.size(), 510u);
  EXPECT_EQ(message.substr(message.size() - 2), "é");
}

}  // namespace
}  // namespace kvkeep
