// Many threads on one prefix cache: every prefix that comes back is right, and nothing stays held.
#include <gtest/gtest.h>

#include <thread>

#include "testing/prompts.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using testing::some_tokens;
using testing::TestStore;
using testing::Tokens;
using testing::operator+;

constexpr uint32_t kBlock = 8;
constexpr int kThreads = 4;
constexpr int kRounds = 60;

TEST(PrefixThreads, StoreMatchAndLoadSharedPromptsAtTheSameTime) {
  TestStore store;
  store.options.hot_max_bytes = 64 << 10;  // Blocks leave all the time.
  store.open();
  BlockPool pool(kBlock, 200);
  const auto prefixes = *PrefixCache::open(pool, *store.cache, {{{"model", "m"}}});
  const Tokens shared = some_tokens(1, 40);
  const auto work = [&](uint64_t seed) {
    for (uint64_t round = 0; round < kRounds; ++round) {
      const Tokens tokens = shared + some_tokens(round % 7 + (seed % 2) * 100, 30);
      const auto match = prefixes->match({tokens});
      ASSERT_TRUE(match.ok());
      EXPECT_EQ(testing::difference(prefixes->load(*match), tokens), "");
      ASSERT_TRUE(prefixes->store({tokens}, testing::state_after(tokens)).ok());
      if (round % 9 == seed)
        prefixes->forget_incompatible(match->blocks.empty() ? testing::key_of(seed)
                                                            : match->blocks.back().key);
    }
  };
  store.executor->run_during([&] {
    std::vector<std::thread> threads;
    for (uint64_t seed = 0; seed < kThreads; ++seed) threads.emplace_back(work, seed);
    for (std::thread& thread : threads) thread.join();
  });
  EXPECT_EQ(pool.stats().held_blocks, 0u);
  EXPECT_EQ(prefixes->stats().lookups, uint64_t{kThreads} * kRounds);
}

}  // namespace
}  // namespace kvkeep
