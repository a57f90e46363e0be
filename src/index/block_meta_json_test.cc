// META-01 to META-06: a block's record as a value and as JSON.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "kvkeep/block_cache.h"
#include "testing/block_builder.h"
#include "testing/manual_clock.h"
#include "testing/proves.h"

namespace kvkeep {
namespace {

using nlohmann::json;

BlockMeta plain() {
  BlockMeta meta{testing::key_of(1), "/tmp/store/a/block.safetensors", 2048, 1000.5, 2000.25, {}};
  meta.info.token_count = 64;
  meta.info.num_layers = 32;
  meta.info.model_name = "org/model-7B";
  return meta;
}

BlockMeta full() {
  BlockMeta meta = plain();
  meta.info.block_size = 256;
  meta.info.signature = R"({"block_size":256,"model_name":"é"})";
  meta.info.layer_types = {"KVCache", "CacheList"};
  meta.info.meta_states = {{MetaValue{int64_t{64}}, MetaValue{6.0}, MetaValue{std::string("0")}},
                           {MetaValue{nullptr}, MetaValue{true},
                            MetaValue{std::vector<MetaValue>{MetaValue{int64_t{-1}}}}}};
  meta.info.parent = testing::key_of(2);
  return meta;
}

std::set<std::string> keys_of(const json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

TEST(BlockMeta, FieldsReadBackUnchanged) {
  testing::proves("META-01");
  const BlockMeta meta = plain();
  EXPECT_EQ(meta.hash, testing::key_of(1));
  EXPECT_EQ(meta.path, "/tmp/store/a/block.safetensors");
  EXPECT_EQ(meta.file_size, 2048u);
  EXPECT_EQ(meta.info.token_count, 64u);
  EXPECT_EQ(meta.created_at, 1000.5);
  EXPECT_EQ(meta.last_access, 2000.25);
  EXPECT_EQ(meta.info.num_layers, 32u);
  EXPECT_EQ(meta.info.model_name, "org/model-7B");
}

TEST(BlockMeta, TouchMovesTheLastAccessToTheClock) {
  testing::proves("META-02");
  testing::ManualClock clock;
  BlockMeta meta = plain();
  touch(meta, clock);
  const double before = meta.last_access;
  EXPECT_EQ(before, clock.wall());
  clock.advance(std::chrono::seconds(5));
  touch(meta, clock);
  EXPECT_EQ(meta.last_access, clock.wall());
  EXPECT_GT(meta.last_access, before);
  EXPECT_EQ(meta.created_at, 1000.5);
}

TEST(BlockMeta, JsonHasOptionalMembersOnlyWhenTheyHoldSomething) {
  testing::proves("META-03");
  const std::set<std::string> always{"hash",       "path",           "file_size",  "token_count",
                                     "created_at", "last_access",    "num_layers", "model_name",
                                     "block_size", "cache_signature"};
  BlockMeta meta = plain();
  EXPECT_EQ(keys_of(json::parse(to_json(meta))), always);
  meta.info.layer_types.emplace();
  meta.info.meta_states.emplace();
  EXPECT_EQ(keys_of(json::parse(to_json(meta))), always);

  const json record = json::parse(to_json(full()));
  EXPECT_EQ(record["hash"], testing::key_of(1).to_hex());
  EXPECT_EQ(record["path"], "/tmp/store/a/block.safetensors");
  EXPECT_EQ(record["file_size"], 2048);
  EXPECT_EQ(record["created_at"], 1000.5);
  EXPECT_EQ(record["block_size"], 256);
  EXPECT_EQ(record["cache_signature"], full().info.signature);
  EXPECT_EQ(record["layer_cache_types"], json({"KVCache", "CacheList"}));
  EXPECT_EQ(record["layer_meta_states"], json::parse(R"([[64, 6.0, "0"], [null, true, [-1]]])"));
}

TEST(BlockMeta, JsonBackIsTheExactInverse) {
  testing::proves("META-04");
  const Result<BlockMeta> back = block_meta_from_json(to_json(full()));
  ASSERT_TRUE(back.ok()) << back.status().to_string();
  EXPECT_EQ(to_json(*back), to_json(full()));
  EXPECT_EQ(back->hash, full().hash);
  EXPECT_EQ(back->info.layer_types, full().info.layer_types);
  EXPECT_EQ(back->info.parent, full().info.parent);
  ASSERT_TRUE(back->info.meta_states);
  const MetaState& first = back->info.meta_states->front();
  EXPECT_EQ(std::get<int64_t>(first[0].v), 64);
  EXPECT_EQ(std::get<double>(first[1].v), 6.0);
  EXPECT_EQ(std::get<std::string>(first[2].v), "0");
}

TEST(BlockMeta, AbsentOptionalMembersHaveTheirDefaults) {
  testing::proves("META-05");
  const auto back = block_meta_from_json(
      R"({"hash":"abcd","path":"/p","file_size":1,"token_count":2,"created_at":3,)"
      R"("last_access":4.5,"num_layers":5})");
  ASSERT_TRUE(back.ok()) << back.status().to_string();
  EXPECT_EQ(back->info.model_name, "");
  EXPECT_EQ(back->info.block_size, 0u);
  EXPECT_EQ(back->info.signature, "");
  EXPECT_FALSE(back->info.layer_types);
  EXPECT_FALSE(back->info.meta_states);
  EXPECT_EQ(back->created_at, 3.0);
}

TEST(BlockMeta, MissingAndWrongMembersAreErrorsThatNameThem) {
  testing::proves("META-06");
  const json good = json::parse(to_json(full()));
  for (const char* name :
       {"hash", "path", "file_size", "token_count", "created_at", "last_access", "num_layers"}) {
    json bad = good;
    bad.erase(name);
    const auto back = block_meta_from_json(bad.dump());
    ASSERT_FALSE(back.ok()) << name;
    EXPECT_EQ(back.status().code(), Code::kInvalidArgument);
    EXPECT_NE(back.status().message().find(name), std::string::npos) << back.status().message();
  }
  for (const auto& [name, value] : good.items()) {
    json bad = good;
    bad[name] = json::object();
    EXPECT_FALSE(block_meta_from_json(bad.dump()).ok()) << name;
  }
  for (const char* text : {"", "[]", "{", "null"}) EXPECT_FALSE(block_meta_from_json(text).ok());
  const std::string deep = R"({"layer_meta_states":)" + std::string(100000, '[');
  EXPECT_FALSE(block_meta_from_json(deep + std::string(100000, ']') + "}").ok());
  json odd = good;
  odd["hash"] = "ABCD";
  EXPECT_FALSE(block_meta_from_json(odd.dump()).ok());
  odd = good;
  odd["token_count"] = -1;
  EXPECT_FALSE(block_meta_from_json(odd.dump()).ok());
  odd["token_count"] = uint64_t{1} << 32;
  EXPECT_FALSE(block_meta_from_json(odd.dump()).ok());
}

}  // namespace
}  // namespace kvkeep
