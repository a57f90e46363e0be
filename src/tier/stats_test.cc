// What a cache says about itself: totals, per model, and as text.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "testing/proves.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using testing::blk;
using testing::proves;
using testing::sized;
using testing::TestBlock;
using testing::TestStore;

TestBlock of_model(uint64_t k, const std::string& model) {
  TestBlock block = sized(k, 4096);
  block.input.model_name = model;
  return block;
}

class StatsTest : public ::testing::Test {
 protected:
  StatsTest() {
    store_.options.hot_max_bytes = 1 << 20;
    store_.open();
  }
  void save_through(TestBlock block) {
    block.input.write_back = false;
    ASSERT_EQ(store_.save(block), "queued");
    store_.executor->run_all();
  }
  TestStore store_;
};

TEST_F(StatsTest, TheTextFormHasEveryNameAndReadableSizes) {
  proves("STAT-02", "STAT-09");
  save_through(blk(1));
  const auto json = nlohmann::json::parse(store_.cache->stats_json());
  EXPECT_EQ(json["cache_dir"], "/store");
  for (const char* name :
       {"max_size", "configured_max_size", "total_size", "hot_cache_size", "hot_cache_max"}) {
    EXPECT_TRUE(json[name].is_number()) << name;
    EXPECT_TRUE(json[std::string(name) + "_formatted"].is_string()) << name;
  }
  EXPECT_EQ(json["hot_cache_max_formatted"], "1.00MB");
  EXPECT_EQ(json["num_files"], 1);
  EXPECT_EQ(json["hot_cache_entries"], 0);
  EXPECT_GT(json["utilization"], 0.0);
  for (const char* counter : {"hits", "misses", "saves", "loads", "errors", "evictions",
                              "preload_calls", "preload_blocks_loaded", "preload_time_ms",
                              "writes_cancelled", "temp_files_removed", "load_misses"}) {
    EXPECT_TRUE(json[counter].is_number()) << counter;
  }
}

TEST_F(StatsTest, WithoutADirectoryItsNameIsNone) {
  proves("STAT-02");
  store_.options.hot_only = true;
  store_.options.cache_dir.reset();
  store_.restart();
  EXPECT_EQ(nlohmann::json::parse(store_.cache->stats_json())["cache_dir"], "None");
}

TEST_F(StatsTest, TheStructHasTheFieldsOfTheReference) {
  proves("STAT-03", "STAT-06");
  save_through(blk(1));
  store_.disk->write_all(store_.path(blk(2)), "not a block");
  store_.restart();
  store_.save(blk(3));
  store_.load(blk(1));
  const CacheStats s = store_.cache->stats();
  EXPECT_EQ(s.num_files, 2u);  // Served or not.
  EXPECT_EQ(s.total_size_bytes, store_.cache->tracked_size());
  EXPECT_EQ(s.saves, 1u);
  EXPECT_EQ(s.saves_persisted + s.evictions + s.errors + s.misses, 0u);
  EXPECT_EQ(s.ssd_write_drops + s.evict_unlink_failures, 0u);
  EXPECT_EQ(s.hits, 1u);
  EXPECT_EQ(s.loads, 1u);
  EXPECT_EQ(s.hot_cache_entries, 2u);
  EXPECT_EQ(s.hot_cache_max_bytes, 1u << 20);
  EXPECT_EQ(s.hot_cache_hits + s.hot_cache_evictions, 0u);
  EXPECT_EQ(s.hot_cache_promotions, 1u);
  EXPECT_GT(s.max_size_bytes, 0u);
  EXPECT_EQ(s.configured_max_size_bytes, store_.options.max_size_bytes);
}

// Loads and saves of one cache, and what each counter says of them.
TEST_F(StatsTest, LookupsAndSavesOfPresentBlocksAreToldApart) {
  proves("DEF-58", "RUL-31", "RUL-32");
  store_.save(blk(1));
  store_.save(blk(1));
  store_.load(blk(1));
  store_.load(blk(2));
  save_through(blk(3));
  store_.restart();
  store_.disk->flip_bit(store_.path(blk(3)), 40'000);
  store_.load(blk(3));
  store_.load(blk(1));
  const CacheStats s = store_.cache->stats();
  EXPECT_EQ(s.lookups, s.load_hits + s.load_misses);
  EXPECT_EQ(s.load_hits, s.load_hits_disk);
  EXPECT_EQ(s.load_misses, s.missed(MissReason::kDamaged));
  EXPECT_EQ(s.times(Source::kDisk).count, s.load_hits_disk);
}

TEST_F(StatsTest, OneModelsShareIsFoundByItsNameOrItsLastPart) {
  proves("STAT-07");
  save_through(of_model(1, "org/foo"));
  save_through(of_model(2, "org/foo"));
  store_.save(of_model(3, "org/foo"));
  save_through(of_model(4, "bar/"));
  for (const char* name : {"org/foo", "org/foo//", "foo", "elsewhere/foo"}) {
    const ModelStats foo = store_.cache->stats_for_model(name);
    EXPECT_EQ(foo.model_name, "org/foo") << name;
    EXPECT_EQ(foo.num_files, 2u);
    EXPECT_EQ(foo.total_size_bytes, store_.file_bytes(of_model(1, "org/foo")) * 2);
    EXPECT_EQ(foo.hot_cache_entries, 1u);
    EXPECT_GT(foo.hot_cache_size_bytes, 4000u);
    EXPECT_EQ(foo.max_size_bytes, store_.cache->max_size());
    EXPECT_EQ(foo.hot_cache_max_bytes, 1u << 20);
  }
  EXPECT_EQ(store_.cache->stats_for_model("bar").num_files, 1u);
  for (const char* name : {"", "/", "fo", "none"}) {
    EXPECT_EQ(store_.cache->stats_for_model(name).num_files, 0u) << name;
    EXPECT_EQ(store_.cache->stats_for_model(name).model_name, "") << name;
  }
}

TEST_F(StatsTest, ALastPartThatTwoModelsHaveNamesNeither) {
  proves("DEF-57");
  save_through(of_model(1, "org1/foo"));
  save_through(of_model(2, "org2/foo"));
  EXPECT_EQ(store_.cache->stats_for_model("org1/foo").num_files, 1u);
  EXPECT_EQ(store_.cache->stats_for_model("org2/foo").num_files, 1u);
  EXPECT_EQ(store_.cache->stats_for_model("foo").num_files, 0u);
}

TEST_F(StatsTest, OpeningSaysWhatWasFound) {
  proves("INIT-10", "SCAN-09");
  for (const uint64_t k : {1, 2, 3}) save_through(of_model(k, "other"));
  save_through(of_model(4, "m"));
  store_.options.model_name = "m";
  store_.logger->clear();
  store_.restart();
  std::string line;
  for (const auto& logged : store_.logger->lines()) {
    if (logged.level == LogLevel::kInfo && logged.message.find("SSD cache scan complete") == 0)
      line = logged.message;
  }
  for (const char* part :
       {"/store", "1 blocks served", "skipped_incompatible=3 blocks", "hot tier 1.00MB", "free"}) {
    EXPECT_NE(line.find(part), std::string::npos) << part << " in: " << line;
  }
}

TEST_F(StatsTest, EachCacheHasItsOwnPendingCap) {
  proves("INIT-05", "INIT-06");
  for (const uint64_t tokens : {256, 2048}) {
    TestStore store;
    store.options.block_size_tokens = tokens;
    store.options.kv_bytes_per_token = 200'000;
    store.open();
    const uint32_t cap = max_pending_writes(tokens, 200'000, *system_info());
    EXPECT_EQ(store.cache->pending_cap(), cap);
    EXPECT_EQ(store.cache->options().block_size_tokens, tokens);
    EXPECT_EQ(store.cache->options().kv_bytes_per_token, 200'000u);
    for (uint32_t k = 0; k < cap; ++k) ASSERT_EQ(store.save(sized(k, 2000)), "queued");
    EXPECT_NE(store.save(sized(cap, 2000)), "queued");
  }
}

TEST_F(StatsTest, ALoadSucceedsWhateverBecomesOfItsPromotion) {
  proves("LOAD-14");
  save_through(blk(1));
  save_through(sized(2, 2 << 20));  // Larger than the tier.
  store_.restart();
  EXPECT_EQ(store_.load(sized(2, 2 << 20)), "disk");
  store_.cache->set_hot_max_bytes(1);
  EXPECT_EQ(store_.load(blk(1)), "disk");
  const CacheStats s = store_.cache->stats();
  EXPECT_EQ(s.hot_cache_promotions + s.errors + s.misses, 0u);
}

using Events = std::vector<std::string>;

TEST_F(StatsTest, EventsTellTheLifeOfABlock) {
  proves("RUL-42");
  store_.options.max_size_bytes = store_.own_bytes + store_.options.hot_max_bytes;
  EXPECT_EQ(store_.events->take(), Events{"scan_done"});
  store_.save(blk(1));
  EXPECT_EQ(store_.events->take(), Events{"save_stored"});
  store_.flush();
  EXPECT_EQ(store_.events->take(), (Events{"flush_queued", "write_committed"}));
  store_.cache->shrink_hot_to(0);
  EXPECT_EQ(store_.events->take(), Events{"hot_evicted"});
  store_.load(blk(1));
  EXPECT_EQ(store_.events->take(), Events{"promoted"});
  store_.save(blk(2));
  store_.cache->clear_hot(HotClear::kSpill);
  EXPECT_EQ(store_.events->take(), (Events{"save_stored", "spill_queued"}));
  ASSERT_TRUE(store_.cache->delete_block(blk(2).hash).ok());
  store_.executor->run_all();
  EXPECT_EQ(store_.events->take(), Events{"write_cancelled"});
  store_.files->plan().fail(testing::Op::kAppend, "", 5);
  save_through(blk(3));
  EXPECT_EQ(store_.events->take(), (Events{"save_queued", "write_failed"}));
  store_.disk->flip_bit(store_.path(blk(1)), 40'000);
  store_.load(blk(1));
  EXPECT_EQ(store_.events->take(), Events{"quarantined"});
}

}  // namespace
}  // namespace kvkeep
