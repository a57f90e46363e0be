#include "kvkeep/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "testing/block_builder.h"
#include "testing/fixed_system.h"
#include "testing/manual_clock.h"
#include "testing/manual_executor.h"
#include "testing/proves.h"
#include "testing/recording_logger.h"
#include "testing/temp_dir.h"

namespace kvkeep {
namespace {

using testing::proves;
using testing::sized;
using Cache = std::unique_ptr<TieredBlockCache>;

constexpr ModelDims kDims{.num_layers = 32, .num_kv_heads = 8, .head_dim = 192};
constexpr uint64_t kBytesPerToken = 196'608;

// Caches in a directory of the test's own, on a machine of 64 GiB.
class SchedulerTest : public ::testing::Test {
 protected:
  ~SchedulerTest() override {
    executor_->run_during([this] { caches_.clear(); });
  }

  SchedulerCacheConfig config() const {
    SchedulerCacheConfig config;
    config.paged_ssd_cache_dir = base();
    config.paged_ssd_cache_max_size = 1 << 30;
    return config;
  }
  CacheConfig factory_config() const {
    CacheConfig config;
    config.paged_ssd_cache_dir = base();
    config.max_paged_ssd_cache_size = 1 << 30;
    return config;
  }
  std::filesystem::path base() const { return dir_.path() / "above" / "base"; }
  Environment environment() const { return {clock_, executor_, system_, logger_, nullptr}; }

  TieredBlockCache& keep(Result<Cache> cache) {
    EXPECT_TRUE(cache.ok()) << cache.status().to_string();
    caches_.push_back(*std::move(cache));
    return *caches_.back();
  }
  TieredBlockCache& open(const SchedulerCacheConfig& config) {
    return keep(open_from_scheduler(config, environment()));
  }
  TieredBlockCache& create(const CacheConfig& config, std::string_view model_name) {
    return keep(CacheFactory::create_ssd_cache(config, model_name, environment()));
  }
  void close_all() {
    executor_->run_during([this] { caches_.clear(); });
  }

  const testing::TempDir dir_;
  const std::shared_ptr<testing::ManualClock> clock_ = std::make_shared<testing::ManualClock>();
  const std::shared_ptr<testing::ManualExecutor> executor_ =
      std::make_shared<testing::ManualExecutor>(clock_);
  const std::shared_ptr<testing::FixedSystem> system_ = std::make_shared<testing::FixedSystem>(64);
  const std::shared_ptr<testing::RecordingLogger> logger_ =
      std::make_shared<testing::RecordingLogger>();
  std::vector<Cache> caches_;
};

TEST_F(SchedulerTest, TheSizeOfBlocksAndOfTokensReachesTheCacheAsItOpens) {
  proves("CFG-01", "CFG-02", "CFG-03", "CFG-05", "INIT-06");
  SchedulerCacheConfig wanted = config();
  wanted.paged_cache_block_size = 1024;
  wanted.dims = kDims;
  TieredBlockCache& cache = open(wanted);
  EXPECT_EQ(cache.options().block_size_tokens, 1024u);
  EXPECT_EQ(cache.expected_layout().block_size, 1024u);
  EXPECT_EQ(cache.options().kv_bytes_per_token, kBytesPerToken);
  EXPECT_EQ(cache.options().kv_bytes_per_token, kDims.kv_bytes(1));
  ASSERT_EQ(cache.pending_cap(), 34u);
  EXPECT_EQ(cache.pending_cap(), max_pending_writes(1024, kBytesPerToken, *system_));

  // So many wait in the queue, and not one more.
  for (uint64_t k = 0; k < 34; ++k) {
    ASSERT_EQ(*cache.save_block(sized(k, 2000).hash, sized(k, 2000).input), SaveOutcome::kQueued);
  }
  std::optional<SaveOutcome> last;
  std::thread saver([&] { last = *cache.save_block(sized(34, 2000).hash, sized(34, 2000).input); });
  EXPECT_TRUE(clock_->wait_for_waiters(1));
  clock_->advance(cache.options().queue_wait);
  saver.join();
  EXPECT_EQ(last, SaveOutcome::kWrittenInline);
}

TEST_F(SchedulerTest, LargerBlocksMakeTheCapSmaller) {
  proves("CFG-06");
  SchedulerCacheConfig wanted = config();
  wanted.dims = kDims;
  EXPECT_EQ(open(wanted).pending_cap(), 136u);
  close_all();
  wanted.paged_cache_block_size = 2048;
  EXPECT_EQ(open(wanted).pending_cap(), 32u);
}

TEST_F(SchedulerTest, WithoutAllDimensionsNoModelIsInvented) {
  proves("CFG-04");
  SchedulerCacheConfig wanted = config();
  wanted.dims.num_layers = 32;
  wanted.dims.num_kv_heads = 8;
  EXPECT_EQ(open(wanted).options().kv_bytes_per_token, 200'000u);
  close_all();
  wanted.dims.kv_bytes_per_token = 1'152;
  EXPECT_EQ(open(wanted).options().kv_bytes_per_token, 1'152u);
}

TEST_F(SchedulerTest, EverythingElseReachesTheCache) {
  SchedulerCacheConfig wanted = config();
  wanted.hot_cache_max_size = 7 << 20;
  wanted.model_name = "m";
  wanted.expected_num_layers = 3;
  const Options& options = open(wanted).options();
  EXPECT_EQ(options.cache_dir, base());
  EXPECT_EQ(options.max_size_bytes, 1u << 30);
  EXPECT_EQ(options.hot_max_bytes, 7u << 20);
  EXPECT_EQ(options.model_name, "m");
  EXPECT_EQ(options.num_layers, 3u);
}

TEST_F(SchedulerTest, ABudgetIsSharedAndRamAloneTouchesNoDisk) {
  SchedulerCacheConfig wanted = config();
  wanted.hot_cache_only = true;
  wanted.hot_cache_budget = HotBudget::create(1 << 20);
  TieredBlockCache& cache = open(wanted);
  ASSERT_EQ(*cache.save_block(sized(1, 2000).hash, sized(1, 2000).input), SaveOutcome::kStored);
  EXPECT_GT(wanted.hot_cache_budget->total_bytes(), 0u);
  EXPECT_FALSE(std::filesystem::exists(base()));
}

TEST_F(SchedulerTest, WithoutADirectoryThereIsNoCache) {
  SchedulerCacheConfig wanted = config();
  wanted.paged_ssd_cache_dir.reset();
  const auto cache = open_from_scheduler(wanted, environment());
  ASSERT_TRUE(cache.ok());
  EXPECT_EQ(*cache, nullptr);
}

TEST_F(SchedulerTest, MistakesNameTheMember) {
  SchedulerCacheConfig no_block = config(), no_element = config();
  no_block.paged_cache_block_size = 0;
  no_element.dims = kDims;
  no_element.dims.dtype_size = 0;
  for (const auto& [wanted, word] :
       {std::pair(no_block, "paged_cache_block_size"), std::pair(no_element, "dtype_size")}) {
    const Status status = open_from_scheduler(wanted, environment()).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
  }
  EXPECT_FALSE(std::filesystem::exists(base()));
}

TEST_F(SchedulerTest, TheFactoryPassesTheSizeOfBlocksOn) {
  proves("FACT-01");
  CacheConfig wanted = factory_config();
  wanted.block_size = 1024;
  TieredBlockCache& cache = create(wanted, "test-model");
  EXPECT_EQ(cache.pending_cap(), 33u);
  EXPECT_EQ(cache.pending_cap(), max_pending_writes(1024, 200'000, *system_));
  EXPECT_EQ(cache.options().cache_dir, base() / "test-model");
  EXPECT_EQ(cache.expected_layout().model_name, "test-model");
  EXPECT_EQ(cache.expected_layout().block_size, 1024u);
}

TEST_F(SchedulerTest, TheFactoryMakesNoCacheWithoutADirectory) {
  proves("FACT-02");
  for (const char* model_name : {"", "m"}) {
    const auto cache = CacheFactory::create_ssd_cache({}, model_name, environment());
    ASSERT_TRUE(cache.ok());
    EXPECT_EQ(*cache, nullptr);
  }
}

TEST_F(SchedulerTest, ModelsShareADirectoryThatIsNotNamedAfterOne) {
  CacheConfig wanted = factory_config();
  wanted.model_name = "m";
  TieredBlockCache& cache = create(wanted, "");
  EXPECT_EQ(cache.options().cache_dir, base());
  EXPECT_EQ(cache.expected_layout().model_name, "m");
}

TEST_F(SchedulerTest, NoModelNameLeadsOutOfTheDirectory) {
  proves("DEF-69", "FACT-03");
  const std::vector<std::string> names = {
      "..",        ".", "../outside", "../../outside", "/" + dir_.path().string() + "/outside",
      "org/model", "/", "a/../..",    "a\\b",          std::string(400, '.')};
  for (const std::string& name : names) {
    const auto place = create(factory_config(), name).options().cache_dir;
    EXPECT_EQ(place->parent_path(), base()) << name;
    EXPECT_TRUE(std::filesystem::is_directory(*place / "0")) << name;
  }
  const auto count = [](const std::filesystem::path& where) {
    return std::distance(std::filesystem::directory_iterator(where), {});
  };
  EXPECT_EQ(count(base()), static_cast<ptrdiff_t>(names.size())) << "one directory for each";
  EXPECT_EQ(count(base().parent_path()), 1) << "nothing beside it";
  EXPECT_EQ(count(dir_.path()), 1) << "nor above";
}

TEST(CacheFactory, MakesThePoolThatItsConfigurationNames) {
  CacheConfig config;
  EXPECT_EQ((*CacheFactory::create_block_pool(config))->max_blocks(), 1024u);
  EXPECT_EQ((*CacheFactory::create_block_pool(config))->block_size(), 64u);
  config.max_num_blocks = 0;
  EXPECT_NE(CacheFactory::create_block_pool(config).status().message().find("max_num_blocks"),
            std::string::npos);
  config = {};
  config.block_size = 0;
  EXPECT_EQ(CacheFactory::create_block_pool(config).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace kvkeep
