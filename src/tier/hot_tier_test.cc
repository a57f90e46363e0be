// The hot tier: what is kept in RAM, what leaves it, and what it may hold.
#include <gtest/gtest.h>

#include "testing/proves.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using testing::blk;
using testing::proves;
using testing::sized;
using testing::TestBlock;
using testing::TestStore;

constexpr uint64_t kBlock = 4096;  // Bytes of every block here, as image and as file.

TestBlock block(uint64_t k) { return sized(k, kBlock); }

class HotTierTest : public ::testing::Test {
 protected:
  HotTierTest() { open_with_room_for(3); }

  void open_with_room_for(uint64_t blocks) {
    store_.options.hot_max_bytes = blocks * kBlock;
    if (store_.cache != nullptr) store_.close();
    store_.open();
  }
  // Blocks that are on disk only.
  void on_disk(std::initializer_list<uint64_t> ks) {
    for (const uint64_t k : ks) store_.save(block(k));
    store_.restart();
  }
  CacheStats stats() { return store_.cache->stats(); }
  TestStore store_;
};

TEST_F(HotTierTest, ASaveStaysInRamAloneAtFirst) {
  proves("SAVE-18", "HOT-01", "LOAD-02");
  EXPECT_EQ(store_.save(block(1)), "stored");
  EXPECT_EQ(store_.executor->pending(), 0u);
  EXPECT_EQ(stats().num_files, 0u);
  EXPECT_EQ(stats().pending_blocks, 0u);
  EXPECT_EQ(store_.block_bytes(), 0u);
  EXPECT_EQ(stats().saves, 1u);
  EXPECT_EQ(stats().hot_cache_entries, 1u);
  EXPECT_EQ(stats().hot_cache_size_bytes, kBlock);
  EXPECT_EQ(stats().hot_dirty_blocks, 1u);
  EXPECT_EQ(store_.load(block(1)), "hot");
}

TEST_F(HotTierTest, LoadsFromItCountAsHotAndParseNothing) {
  proves("LOAD-03", "DEF-73", "RUL-68");
  store_.save(block(1));
  store_.files->clear_record();
  const auto one = store_.cache->load_block(block(1).hash);
  const auto two = store_.cache->load_block(block(1).hash);
  ASSERT_TRUE(one.ok() && two.ok());
  const auto& first = std::get<Tensor>(std::get<NState>((*one)[0]).elements[0].v);
  const auto& second = std::get<Tensor>(std::get<NState>((*two)[0]).elements[0].v);
  EXPECT_EQ(first.data.view.data(), second.data.view.data());
  EXPECT_TRUE(store_.files->calls().empty());
  EXPECT_EQ(stats().hot_cache_hits, 2u);
  EXPECT_EQ(stats().load_hits_hot, 2u);
  EXPECT_EQ(stats().hits, 2u);
  EXPECT_EQ(stats().loads, 2u);
}

TEST_F(HotTierTest, SavingAHotBlockAgainIsAHitAndRefreshesIt) {
  proves("SAVE-03", "HOT-02");
  for (const uint64_t k : {1, 2, 3}) store_.save(block(k));
  EXPECT_EQ(store_.save(block(1)), "present");
  EXPECT_EQ(stats().hits, 1u);
  EXPECT_EQ(stats().hot_cache_evictions, 0u);
  EXPECT_EQ(stats().hot_cache_size_bytes, 3 * kBlock);
  store_.save(block(4));
  EXPECT_EQ(store_.load(block(1)), "hot");
  EXPECT_NE(store_.load(block(2)), "hot");
}

TEST_F(HotTierTest, WhatDoesNotFitAnyMoreIsSpilledAndFoundThroughout) {
  proves("HOT-03", "HOT-05", "SAVE-26");
  for (const uint64_t k : {1, 2, 3, 4}) store_.save(block(k));
  EXPECT_EQ(stats().hot_cache_evictions, 1u);
  EXPECT_EQ(stats().hot_cache_entries, 3u);
  EXPECT_EQ(store_.load(block(1)), "pending");
  EXPECT_EQ(stats().saves, 4u);
  EXPECT_EQ(stats().saves_persisted, 0u);
  store_.executor->run_all();
  EXPECT_EQ(stats().saves_persisted, 1u);
  EXPECT_EQ(store_.load(block(1)), "disk");
}

TEST_F(HotTierTest, ABlockReadFromDiskIsKeptAndLeavesWithoutAWrite) {
  proves("HOT-04", "HOT-06", "LOAD-04", "PEND-06");
  on_disk({1, 2, 3, 4});
  for (const uint64_t k : {1, 2, 3, 4}) {
    EXPECT_EQ(store_.load(block(k)), "disk");
    EXPECT_EQ(store_.load(block(k)), "hot");
  }
  EXPECT_EQ(stats().hot_cache_promotions, 4u);
  EXPECT_EQ(stats().hot_cache_evictions, 1u);
  EXPECT_EQ(stats().hot_dirty_blocks, 0u);
  EXPECT_EQ(store_.executor->pending(), 0u);
  EXPECT_EQ(stats().pending_blocks, 0u);
  EXPECT_EQ(store_.load(block(1)), "disk");
}

TEST_F(HotTierTest, ALoadMayAskNotToKeepTheBlock) {
  proves("LOAD-12");
  on_disk({1});
  EXPECT_TRUE(store_.cache->load_block_with_info(block(1).hash, false).ok());
  EXPECT_EQ(stats().hot_cache_entries, 0u);
  EXPECT_EQ(store_.load(block(1)), "disk");
}

TEST_F(HotTierTest, WriteThroughGoesToDiskAndIsNotKept) {
  proves("SAVE-20");
  TestBlock direct = block(1);
  direct.input.write_back = false;
  EXPECT_EQ(store_.save(direct), "queued");
  EXPECT_EQ(stats().hot_cache_entries, 0u);
  EXPECT_EQ(stats().saves, 1u);
  store_.executor->run_all();
  store_.options.write_back = false;
  store_.restart();
  EXPECT_EQ(store_.save(block(2)), "queued");
}

TEST_F(HotTierTest, WriteThroughSendsADirtyBlockToDisk) {
  proves("SAVE-04", "SAVE-05");
  TestBlock direct = block(1);
  direct.input.write_back = false;
  store_.save(block(1));
  EXPECT_EQ(store_.save(direct), "present");
  EXPECT_EQ(stats().hits, 1u);
  EXPECT_EQ(stats().hot_cache_entries, 0u);
  EXPECT_EQ(stats().hot_cache_evictions, 0u);
  EXPECT_EQ(store_.load(block(1)), "pending");
  store_.executor->run_all();
  EXPECT_EQ(store_.load(block(1)), "disk");  // Now hot and clean.
  EXPECT_EQ(store_.save(direct), "present");
  EXPECT_EQ(store_.load(block(1)), "hot");
}

TEST_F(HotTierTest, WriteThroughKeepsADirtyBlockThatFindsTheQueueFull) {
  proves("SAVE-05");
  store_.options.pending_cap = 1;
  open_with_room_for(3);
  TestBlock direct = block(1);
  direct.input.write_back = false;
  store_.save(block(1));
  TestBlock filler = block(2);
  filler.input.write_back = false;
  EXPECT_EQ(store_.save(filler), "queued");
  EXPECT_EQ(store_.save(direct), "busy");
  EXPECT_EQ(store_.load(block(1)), "hot");
}

TEST_F(HotTierTest, ABlockLargerThanTheTierGoesToDiskAndEvictsNothing) {
  proves("HOT-08");
  store_.save(block(1));
  const TestBlock large = sized(2, 4 * kBlock);
  EXPECT_EQ(store_.save(large), "queued");
  EXPECT_EQ(stats().hot_cache_entries, 1u);
  store_.executor->run_all();
  EXPECT_EQ(store_.load(large), "disk");
  EXPECT_EQ(store_.load(large), "disk");
  EXPECT_EQ(store_.load(block(1)), "hot");
}

TEST_F(HotTierTest, ClearingLosesOrSpillsAsAsked) {
  proves("HOT-09", "DEF-62", "RUL-35", "DEF-23");
  store_.save(block(1));
  TestBlock queued = block(2);
  queued.input.write_back = false;
  store_.save(queued);
  EXPECT_EQ(store_.cache->clear_hot(HotClear::kDiscard), 1u);
  EXPECT_EQ(stats().ssd_write_drops, 1u);
  EXPECT_EQ(stats().hot_cache_size_bytes, 0u);
  EXPECT_EQ(store_.load(block(1)), "evicted");
  EXPECT_EQ(store_.load(block(2)), "pending");
  store_.save(block(3));
  EXPECT_EQ(store_.cache->clear_hot(HotClear::kSpill), 1u);
  EXPECT_EQ(stats().ssd_write_drops, 1u);
  store_.executor->run_all();
  EXPECT_EQ(store_.load(block(2)), "disk");
  EXPECT_EQ(store_.load(block(3)), "disk");
}

TEST_F(HotTierTest, ShrinkingTakesTheOldestAndSpillsTheDirty) {
  proves("HOT-10");
  on_disk({1});
  store_.load(block(1));
  store_.save(block(2));
  store_.save(block(3));
  EXPECT_EQ(store_.cache->shrink_hot_to(kBlock, {block(2).hash}), 2 * kBlock);
  EXPECT_EQ(stats().hot_cache_evictions, 2u);
  EXPECT_EQ(store_.load(block(2)), "hot");
  EXPECT_EQ(store_.load(block(3)), "pending");
  EXPECT_EQ(store_.cache->shrink_hot_to(0, {block(2).hash}), 0u);
}

TEST_F(HotTierTest, TheLimitCanBeChanged) {
  proves("HOT-12", "INIT-04");
  store_.save(block(1));
  store_.cache->set_hot_max_bytes(kBlock);
  store_.save(block(2));
  EXPECT_EQ(stats().hot_cache_entries, 1u);
  store_.cache->set_hot_max_bytes(0);
  EXPECT_EQ(store_.save(block(3)), "queued");
  EXPECT_EQ(stats().hot_cache_max_bytes, 0u);
}

TEST_F(HotTierTest, WithoutATierNothingIsHot) {
  proves("HOT-13", "DEF-22");
  open_with_room_for(0);
  store_.save(block(1));
  EXPECT_EQ(stats().hot_cache_entries, 0u);
  EXPECT_EQ(stats().hot_cache_size_bytes, 0u);
  EXPECT_EQ(store_.load(block(1)), "pending");
  EXPECT_EQ(stats().hot_cache_hits, 0u);
  store_.executor->run_all();
  EXPECT_EQ(stats().hot_cache_size_bytes, 0u);
}

TEST_F(HotTierTest, EvictionFromDiskLeavesTheHotCopy) {
  proves("HOT-07");
  store_.options.max_size_bytes = store_.own_bytes + kBlock;
  open_with_room_for(3);
  on_disk({1});
  EXPECT_EQ(store_.load(block(1)), "disk");
  TestBlock direct = block(2);
  direct.input.write_back = false;
  EXPECT_EQ(store_.save(direct), "queued");
  store_.executor->run_all();
  EXPECT_EQ(stats().evictions, 1u);
  EXPECT_EQ(store_.load(block(1)), "hot");
  EXPECT_EQ(stats().num_files, 1u);
}

TEST_F(HotTierTest, DeleteTakesEveryCopy) {
  proves("DEL-02", "DEL-04");
  store_.save(block(1));
  EXPECT_TRUE(*store_.cache->delete_block(block(1).hash));
  EXPECT_EQ(stats().hot_cache_size_bytes, 0u);
  EXPECT_EQ(store_.load(block(1)), "deleted");
  on_disk({2});
  store_.load(block(2));
  EXPECT_TRUE(*store_.cache->delete_block(block(2).hash));
  EXPECT_EQ(store_.load(block(2)), "deleted");
  EXPECT_FALSE(store_.disk->read_all(store_.path(block(2))).has_value());
  EXPECT_EQ(stats().hot_cache_size_bytes, 0u);
  EXPECT_EQ(store_.pool->in_use_bytes(), 0u);
}

TEST_F(HotTierTest, RamIsAccountedByRoles) {
  proves("RUL-10", "RUL-49");
  store_.save(block(1));
  TestBlock queued = block(2);
  queued.input.write_back = false;
  store_.save(queued);
  const auto lent = store_.cache->load_block(block(1).hash);
  EXPECT_EQ(stats().hot_cache_size_bytes, kBlock);
  EXPECT_EQ(stats().pending_bytes, kBlock);
  EXPECT_EQ(stats().lent_bytes, 0u);
  store_.cache->clear_hot(HotClear::kDiscard);
  EXPECT_EQ(stats().hot_cache_size_bytes, 0u);
  EXPECT_EQ(stats().lent_bytes, kBlock);
  EXPECT_EQ(stats().ram_bytes, 2 * kBlock);
}

TEST_F(HotTierTest, ABlockReportedBadLeavesEveryTier) {
  proves("RUL-45");
  on_disk({1});
  store_.load(block(1));
  EXPECT_TRUE(*store_.cache->report_bad(block(1).hash));
  EXPECT_EQ(store_.load(block(1)), "damaged");
  EXPECT_FALSE(store_.disk->read_all(store_.path(block(1))).has_value());
  EXPECT_EQ(stats().quarantined, 1u);
  EXPECT_EQ(stats().reported_bad, 1u);
  EXPECT_EQ(stats().hot_cache_size_bytes, 0u);
  EXPECT_FALSE(*store_.cache->report_bad(block(1).hash));
  store_.save(block(2));
  EXPECT_TRUE(*store_.cache->report_bad(block(2).hash));
  EXPECT_EQ(store_.load(block(2)), "damaged");
}

TEST_F(HotTierTest, WhySaysWhereABlockIs) {
  store_.save(block(1));
  EXPECT_EQ(store_.cache->why(block(1).hash).source, Source::kHot);
  EXPECT_EQ(store_.cache->why(block(9).hash).reason, MissReason::kAbsent);
  on_disk({2});
  EXPECT_EQ(store_.cache->why(block(2).hash).source, Source::kDisk);
  ASSERT_TRUE(store_.cache->delete_block(block(2).hash).ok());
  EXPECT_EQ(store_.cache->why(block(2).hash).reason, MissReason::kDeleted);
  EXPECT_NE(store_.cache->why(block(2).hash).text.find("deleted by a caller"), std::string::npos);
  EXPECT_EQ(stats().lookups, 0u);
}

class HotOnlyTest : public ::testing::Test {
 protected:
  HotOnlyTest() {
    store_.options.hot_only = true;
    store_.options.cache_dir.reset();
    store_.options.max_size_bytes = 0;
    store_.options.hot_max_bytes = 2 * kBlock;
    store_.open();
  }
  CacheStats stats() { return store_.cache->stats(); }
  TestStore store_;
};

TEST_F(HotOnlyTest, TouchesNoDisk) {
  proves("INIT-02", "INIT-08", "CLOSE-10", "DEF-59");
  EXPECT_EQ(store_.save(block(1)), "stored");
  EXPECT_EQ(store_.load(block(1)), "hot");
  EXPECT_EQ(store_.load(block(2)), "absent");
  EXPECT_TRUE(store_.cache->flush({}).ok());
  EXPECT_EQ(store_.cache->preload(std::vector<BlockHash>{block(1).hash}), 0u);
  EXPECT_TRUE(store_.cache->block_path(block(1).hash).empty());
  EXPECT_FALSE(store_.cache->block_meta(block(1).hash).has_value());
  EXPECT_TRUE(*store_.cache->delete_block(block(1).hash));
  store_.save(block(3));
  const auto report = store_.cache->close({});
  EXPECT_TRUE(report.ok());
  EXPECT_TRUE(store_.files->calls().empty());
  EXPECT_EQ(store_.logger->count(LogLevel::kWarning), 0u);
  EXPECT_EQ(store_.executor->pending() + store_.executor->delayed(), 0u);
}

TEST_F(HotOnlyTest, WhatLeavesIsGoneAndCounted) {
  proves("HOT-11");
  for (const uint64_t k : {1, 2, 3}) EXPECT_EQ(store_.save(block(k)), "stored");
  EXPECT_EQ(store_.load(block(1)), "evicted");
  EXPECT_EQ(stats().hot_cache_evictions, 1u);
  EXPECT_EQ(stats().ssd_write_drops, 1u);
  EXPECT_EQ(store_.cache->shrink_hot_to(0), 2 * kBlock);
  EXPECT_EQ(stats().ssd_write_drops, 3u);
  EXPECT_EQ(store_.logger->count("8.00KB"), 1u);
}

TEST_F(HotOnlyTest, TheEndOfAChainLeavesBeforeItsHead) {
  proves("RUL-27");
  const auto is_hot = [this](uint64_t k) { return store_.cache->has_block(block(k).hash); };
  store_.cache->set_hot_max_bytes(3 * kBlock + kBlock / 2);  // A parent's name takes room, too.
  for (const uint64_t k : {1, 2, 3}) {
    TestBlock link = block(k);
    if (k > 1) link.input.parent = block(k - 1).hash;
    EXPECT_EQ(store_.save(link), "stored");
  }
  EXPECT_EQ(store_.save(block(4)), "stored");
  EXPECT_TRUE(is_hot(1) && is_hot(2) && !is_hot(3));
  EXPECT_EQ(store_.save(block(5)), "stored");
  EXPECT_TRUE(is_hot(1) && !is_hot(2) && is_hot(4));
  EXPECT_EQ(stats().hot_cache_evictions, 2u);
}

TEST_F(HotOnlyTest, RefusesWhatIsLargerThanTheTier) {
  proves("HOT-08", "PEND-07");
  store_.save(block(1));
  EXPECT_EQ(store_.save(sized(2, 3 * kBlock)), "too_large");
  EXPECT_EQ(store_.load(block(1)), "hot");
}

TEST_F(HotOnlyTest, WithoutATierItKeepsNothing) {
  proves("SAVE-19");
  store_.cache->set_hot_max_bytes(0);
  EXPECT_EQ(store_.save(block(1)), "too_large");
  EXPECT_EQ(store_.load(block(1)), "absent");
  EXPECT_EQ(store_.pool->in_use_bytes(), 0u);
}

TEST(HotBudgetInCaches, IsSharedAndEachOwnerSpillsItsOwn) {
  proves("BUDGET-04", "BUDGET-11", "INIT-03");
  const auto budget = HotBudget::create(2 * kBlock);
  TestStore a, b;
  for (TestStore* store : {&a, &b}) {
    store->options.budget = budget;
    store->options.hot_max_bytes = 1;  // Ignored.
    store->open();
  }
  EXPECT_EQ(a.cache->stats().hot_cache_max_bytes, 2 * kBlock);
  a.save(block(1));
  b.save(block(1));
  EXPECT_EQ(budget->remaining_bytes(), 0u);
  b.save(block(2));
  EXPECT_EQ(budget->total_bytes(), 2 * kBlock);
  EXPECT_EQ(a.cache->stats().hot_cache_evictions, 1u);
  EXPECT_EQ(b.cache->stats().hot_cache_evictions, 0u);
  EXPECT_EQ(a.load(block(1)), "pending");
  EXPECT_EQ(b.load(block(1)), "hot");
  EXPECT_EQ(budget->clear_all_owners(), 2u);
  EXPECT_EQ(budget->total_bytes(), 0u);
}

TEST(HotBudgetInCaches, EndsWithTheCache) {
  proves("CLOSE-05");
  const auto budget = HotBudget::create(10 * kBlock);
  TestStore store;
  store.options.budget = budget;
  store.open();
  store.save(block(1));
  ASSERT_TRUE(store.cache->flush(Duration::zero()).status().code() == Code::kDeadlineExceeded);
  store.executor->run_all();
  ASSERT_TRUE(store.cache->close({}).ok());
  EXPECT_EQ(budget->total_bytes(), 0u);
  EXPECT_EQ(store.cache->stats().hot_cache_entries, 0u);
  EXPECT_EQ(store.pool->in_use_bytes(), 0u);
}

}  // namespace
}  // namespace kvkeep
