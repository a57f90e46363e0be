// Save, close, new process, load: every kind of block, through the public headers only.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "kvkeep/kvkeep.h"
#include "testing/block_builder.h"
#include "testing/block_compare.h"
#include "testing/proves.h"
#include "testing/temp_dir.h"

namespace kvkeep {
namespace {

Options options_for(const testing::TempDir& dir, Durability durability = Durability::kNone) {
  Options options;
  options.cache_dir = dir.path() / "store";
  options.max_size_bytes = 64ull << 20;
  options.durability = durability;
  return options;
}

// What the other process does; its exit status.
int save_all(const Options& options) {
  auto cache = TieredBlockCache::open(options);
  if (!cache.ok()) return 1;
  for (const testing::TestBlock& block : testing::all_kinds()) {
    if (!(*cache)->save_block(block.hash, block.input).ok()) return 2;
  }
  return (*cache)->close().ok() ? 0 : 3;
}

int run_in_child(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(Restart, EveryKindOfBlockReturnsInANewProcess) {
  testing::proves("CLOSE-02", "CLOSE-04", "WRITER-03", "ENC-04");
  for (const Durability durability :
       {Durability::kNone, Durability::kData, Durability::kDataAndDir}) {
    const testing::TempDir dir;
    const Options options = options_for(dir, durability);
    ASSERT_EQ(run_in_child([&] { return save_all(options); }), 0);
    auto cache = TieredBlockCache::open(options);
    ASSERT_TRUE(cache.ok()) << cache.status().to_string();
    for (const testing::TestBlock& block : testing::all_kinds()) {
      const auto loaded = (*cache)->load_block_with_info(block.hash);
      ASSERT_TRUE(loaded.ok()) << block.name << ": " << loaded.status().to_string();
      EXPECT_EQ(testing::difference(block.input, *loaded), "") << block.name;
      EXPECT_EQ(loaded->source, Source::kDisk);
    }
  }
}

TEST(Restart, AKilledProcessLeavesAStoreThatOpens) {
  testing::proves("SCAN-11", "DEF-12");
  const testing::TempDir dir;
  const Options options = options_for(dir);
  const int status = run_in_child([&]() -> int {
    auto cache = TieredBlockCache::open(options);
    if (!cache.ok()) return 1;
    for (uint64_t k = 0; k < 40; ++k) {
      if (!(*cache)->save_block(testing::blk(k).hash, testing::blk(k).input).ok()) return 2;
    }
    ::raise(SIGKILL);
    return 3;
  });
  ASSERT_EQ(status, 128 + SIGKILL);
  auto cache = TieredBlockCache::open(options);
  ASSERT_TRUE(cache.ok()) << cache.status().to_string();
  for (uint64_t k = 0; k < 40; ++k) {
    const auto loaded = (*cache)->load_block_with_info(testing::blk(k).hash);
    if (loaded.ok()) {
      EXPECT_EQ(testing::difference(testing::blk(k).input, *loaded), "");
    }
  }
  EXPECT_EQ((*cache)->stats().errors, 0u);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(*options.cache_dir)) {
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
  }
}

}  // namespace
}  // namespace kvkeep
