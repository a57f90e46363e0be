// ERR-10: every call ends with an answer, and leaves a cache that works, whichever allocation
// inside of it fails. The allocations of the calling thread are counted, and the n-th fails, for
// each n.
#include <gtest/gtest.h>

#include <string>

#include "failing_new.h"
#include "kvkeep/kvkeep.h"
#include "testing/block_builder.h"
#include "testing/block_compare.h"
#include "testing/manual_clock.h"
#include "testing/manual_executor.h"
#include "testing/proves.h"
#include "testing/recording_logger.h"
#include "testing/temp_dir.h"

namespace kvkeep {
namespace {

using testing::blk;
using testing::run_with_failure;
using testing::TestBlock;

constexpr int64_t kMostAllocations = 5000;

class Allocations : public ::testing::TestWithParam<uint64_t> {
 protected:
  Allocations() {
    options_.cache_dir = dir_.path() / "store";
    options_.max_size_bytes = 1 << 24;
    options_.hot_max_bytes = GetParam();
    options_.queue_wait = Duration::zero();
  }
  ~Allocations() override { close(); }

  Environment environment() { return {clock_, executor_, nullptr, logger_}; }
  void open() {
    auto opened = TieredBlockCache::open(options_, environment());
    ASSERT_TRUE(opened.ok()) << opened.status().to_string();
    cache_ = *std::move(opened);
  }
  void close() {
    executor_->run_during([this] { cache_.reset(); });
  }
  void flush() {
    executor_->run_during([this] {
      const auto flushed = cache_->flush({});
      ASSERT_TRUE(flushed.ok()) << flushed.status().to_string();
    });
  }
  std::string load(const TestBlock& block) {
    const auto loaded = cache_->load_block_with_info(block.hash);
    if (!loaded.ok()) return loaded.status().to_string();
    return testing::difference(block.input, *loaded, options_.profile);
  }
  // Nothing is pending or lent, and every lookup has an end.
  void expect_in_order() {
    flush();
    cache_->clear_hot(HotClear::kSpill);
    flush();
    const CacheStats stats = cache_->stats();
    uint64_t missed = 0;
    for (const uint64_t count : stats.miss_reason) missed += count;
    EXPECT_EQ(stats.lookups, stats.load_hits + missed);
    EXPECT_EQ(stats.pending_blocks, 0u);
    EXPECT_EQ(stats.pending_bytes, 0u);
    EXPECT_EQ(stats.hot_cache_size_bytes, 0u);
    EXPECT_EQ(stats.hot_dirty_blocks, 0u);
    EXPECT_EQ(stats.ram_bytes, 0u);
    EXPECT_EQ(stats.total_size_bytes, stats.allocated_bytes);
  }

  const testing::TempDir dir_;
  const std::shared_ptr<testing::ManualClock> clock_ = std::make_shared<testing::ManualClock>();
  const std::shared_ptr<testing::ManualExecutor> executor_ =
      std::make_shared<testing::ManualExecutor>(clock_);
  const std::shared_ptr<testing::RecordingLogger> logger_ =
      std::make_shared<testing::RecordingLogger>();
  Options options_;
  std::unique_ptr<TieredBlockCache> cache_;
};

TEST_P(Allocations, AFailedOneInASaveRefusesTheBlockAndTheCacheGoesOn) {
  testing::proves("ERR-10");
  open();
  int64_t n = 0;
  for (bool failed = true; failed; ++n) {
    ASSERT_LT(n, kMostAllocations);
    const TestBlock block = blk(static_cast<int>(n));
    Result<SaveOutcome> saved = SaveOutcome::kQueued;
    BlockInput input = block.input;
    failed = run_with_failure(n, [&] { saved = cache_->save_block(block.hash, std::move(input)); });
    if (!saved.ok()) {
      EXPECT_EQ(saved.status().code(), Code::kResourceExhausted) << n << saved.status().to_string();
      EXPECT_EQ(saved.status().refusal(), Refusal::kRefusedNoMemory) << n;
      const auto again = cache_->save_block(block.hash, block.input);
      ASSERT_TRUE(again.ok()) << n << again.status().to_string();
    }
    EXPECT_EQ(load(block), "") << n;
    flush();
  }
  EXPECT_GT(n, 20);
  EXPECT_EQ(cache_->size(), static_cast<size_t>(n));
  expect_in_order();
  for (int64_t i = 0; i < n; ++i) EXPECT_EQ(load(blk(static_cast<int>(i))), "") << i;
}

TEST_P(Allocations, AFailedOneInALoadIsAMissAndTheNextLoadHits) {
  testing::proves("ERR-10");
  open();
  const TestBlock block = blk(1);
  ASSERT_TRUE(cache_->save_block(block.hash, block.input).ok());
  int64_t n = 0;
  for (bool failed = true; failed; ++n) {
    ASSERT_LT(n, kMostAllocations);
    expect_in_order();  // So that the load reads the disk.
    Result<LoadedBlock> loaded = Status(Code::kInternal, "not called");
    failed = run_with_failure(n, [&] { loaded = cache_->load_block_with_info(block.hash); });
    if (!loaded.ok()) {
      EXPECT_EQ(loaded.status().code(), Code::kResourceExhausted) << n << loaded.status().message();
      EXPECT_EQ(loaded.status().miss_reason(), MissReason::kNoMemory) << n;
    }
    loaded = Status(Code::kInternal, "given back");
    EXPECT_EQ(load(block), "") << n;
  }
  EXPECT_GT(n, 20);
}

TEST_P(Allocations, AFailedOneInABatchGivesOneAnswerPerKey) {
  testing::proves("ERR-10");
  open();
  const std::vector<BlockHash> keys = {blk(1).hash, blk(2).hash, blk(3).hash};
  for (const int i : {1, 2}) ASSERT_TRUE(cache_->save_block(blk(i).hash, blk(i).input).ok());
  for (const BatchMode mode : {BatchMode::kPrefix, BatchMode::kEach}) {
    bool failed = true;
    for (int64_t n = 0; failed; ++n) {
      ASSERT_LT(n, kMostAllocations);
      expect_in_order();
      BatchResult results;
      failed = run_with_failure(n, [&] { results = cache_->load_blocks(keys, mode); });
      if (mode == BatchMode::kEach) {
        EXPECT_EQ(results.size(), keys.size()) << n;
      }
      EXPECT_GE(results.size(), 1u) << n;
      if (!failed) {
        EXPECT_EQ(results.size(), keys.size());
      }
    }
  }
}

TEST_P(Allocations, AFailedOneInOpenLeavesTheStoreForTheNextOpen) {
  testing::proves("ERR-10");
  open();
  for (const int i : {1, 2}) ASSERT_TRUE(cache_->save_block(blk(i).hash, blk(i).input).ok());
  close();
  int64_t n = 0;
  for (bool failed = true; failed; ++n) {
    ASSERT_LT(n, kMostAllocations);
    Result<std::unique_ptr<TieredBlockCache>> opened = Status(Code::kInternal, "not called");
    Options options = options_;
    failed = run_with_failure(n, [&] {
      opened = TieredBlockCache::open(std::move(options), {clock_, executor_, nullptr, logger_});
    });
    if (opened.ok()) {
      cache_ = *std::move(opened);
      for (const int i : {1, 2}) {  // A header that could not be read makes a miss, not a loss.
        const auto loaded = cache_->load_block_with_info(blk(i).hash);
        if (loaded.ok()) continue;
        EXPECT_EQ(loaded.status().miss_reason(), MissReason::kUnreadable) << n;
      }
      close();
    } else {
      EXPECT_NE(opened.status().code(), Code::kInternal) << n << opened.status().to_string();
    }
    open();
    EXPECT_EQ(load(blk(1)), "") << n;
    EXPECT_EQ(load(blk(2)), "") << n;
    close();
  }
  EXPECT_GT(n, 20);
}

TEST_P(Allocations, AFailedOneInADeleteLeavesTheBlockEitherWholeOrGone) {
  testing::proves("ERR-10");
  open();
  const TestBlock block = blk(1);
  int64_t n = 0;
  for (bool failed = true; failed; ++n) {
    ASSERT_LT(n, kMostAllocations);
    ASSERT_TRUE(cache_->save_block(block.hash, block.input).ok());
    expect_in_order();
    failed = run_with_failure(n, [&] {
      const auto removed = cache_->delete_block(block.hash);
      if (removed.ok()) {
        EXPECT_TRUE(*removed);
      }
    });
    if (cache_->has_block(block.hash)) {
      EXPECT_EQ(load(block), "") << n;
    }
    EXPECT_TRUE(cache_->delete_block(block.hash).ok()) << n;
    EXPECT_FALSE(cache_->has_block(block.hash)) << n;
  }
}

TEST(KeyAllocations, AFailedOneEndsWithAStatusAndNeverWithAnotherKey) {
  testing::proves("ERR-10");
  for (const KeyRecipe recipe : {KeyRecipe::kKvkeep1, KeyRecipe::kOmlx1}) {
    const std::string text(100, 'x');  // Too long to do without an allocation.
    const ChainOptions options{
        .block_size = 2, .fields = {{"model", text}}, .extras = {{text}}, .recipe = recipe};
    const std::vector<uint32_t> tokens = {1, 2, 3, 4};
    const auto expected = chain_keys(tokens, options);
    ASSERT_TRUE(expected.ok());
    int64_t n = 0;
    for (bool failed = true; failed; ++n) {
      ASSERT_LT(n, kMostAllocations);
      Result<std::vector<BlockHash>> keys = Status(Code::kInternal, "not called");
      failed = run_with_failure(n, [&] { keys = chain_keys(tokens, options); });
      if (keys.ok()) {
        EXPECT_EQ(*keys, *expected) << n;
      } else {
        EXPECT_EQ(keys.status().code(), Code::kResourceExhausted) << keys.status().to_string();
      }
    }
    EXPECT_GT(n, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(HotTier, Allocations, ::testing::Values(0, 1 << 22));

}  // namespace
}  // namespace kvkeep
