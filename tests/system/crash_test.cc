// The process, or the power, ends anywhere during a save and during the replacement of a block:
// whoever opens the store next finds the old block, the new one, or a miss (contract D.3).
#include <gtest/gtest.h>

#include <cerrno>
#include <span>

#include "testing/crash_replay.h"
#include "testing/proves.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using testing::MemFileSystem;
using testing::Op;
using testing::TestBlock;
using testing::TestStore;
using testing::Unsynced;

TestBlock content(uint64_t variant) {
  TestBlock block = testing::sized(variant, 9000);
  block.hash = testing::key_of(1);
  return block;
}

// What a load of the block says in a process that finds this disk.
std::string found_on(const std::shared_ptr<MemFileSystem>& disk) {
  TestStore next;
  next.disk = disk;
  next.process = 40;  // Not one that has crashed.
  next.files = std::make_shared<testing::FaultyFileSystem>(disk);
  next.open();
  const auto loaded = next.cache->load_block_with_info(testing::key_of(1));
  for (const std::string& path : disk->paths()) {
    const bool service = path == kCacheTag || path.substr(0, kServiceDir.size()) == kServiceDir;
    EXPECT_TRUE(service || next.cache->stats().num_files == 1) << "untracked: " << path;
  }
  if (!loaded.ok()) return "miss";
  for (const uint64_t variant : {1, 2}) {
    if (testing::difference(content(variant).input, *loaded).empty())
      return variant == 1 ? "old" : "new";
  }
  return "WRONG";
}

class CrashTest : public ::testing::TestWithParam<std::tuple<Durability, bool>> {
 protected:
  CrashTest() {
    store_.options.durability = std::get<0>(GetParam());
    if (std::get<1>(GetParam())) store_.options.hot_max_bytes = 1 << 20;
    store_.open();
  }
  void save(uint64_t variant) {
    ASSERT_TRUE(store_.cache->save_block(content(variant).hash, content(variant).input).ok());
    store_.flush();
  }
  // A suspect block is replaced by the next save of its key.
  void make_suspect() {
    store_.cache->clear_hot(HotClear::kDiscard);
    store_.files->plan().fail(Op::kOpenRead, store_.path(content(1)), EIO);
    EXPECT_EQ(store_.load(content(1)), "unreadable");
  }
  std::map<std::string, int> replay() {
    std::map<std::string, int> seen;
    const auto changes = store_.files->changes();
    for (const Unsynced unsynced : {Unsynced::kKept, Unsynced::kTorn, Unsynced::kZeroed}) {
      for (size_t n = 0; n <= changes.size(); ++n)
        ++seen[found_on(replay_changes(std::span(changes).first(n), unsynced))];
    }
    return seen;
  }
  TestStore store_;
};

TEST_P(CrashTest, ASaveMayEndAnywhere) {
  testing::proves("DEF-10", "DEF-12");
  save(1);
  const auto seen = replay();
  EXPECT_EQ(seen.count("WRONG"), 0u);
  EXPECT_GT(seen.at("miss"), 0);
  EXPECT_GT(seen.at("old"), 0);
}

TEST_P(CrashTest, AReplacementMayEndAnywhere) {
  testing::proves("DEF-10", "DEF-14", "RUL-52");
  save(1);
  make_suspect();
  save(2);
  const auto seen = replay();
  EXPECT_EQ(seen.count("WRONG"), 0u);
  EXPECT_GT(seen.at("old"), 0);
  EXPECT_GT(seen.at("new"), 0);
}

INSTANTIATE_TEST_SUITE_P(EveryDurabilityWithAndWithoutAHotTier, CrashTest,
                         ::testing::Combine(::testing::Values(Durability::kNone, Durability::kData,
                                                              Durability::kDataAndDir),
                                            ::testing::Bool()));

}  // namespace
}  // namespace kvkeep
