#include "index/block_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "testing/proves.h"

namespace kvkeep {
namespace {

BlockHash key(uint32_t n) { return *BlockHash::from_bytes(std::as_bytes(std::span(&n, 1))); }

BlockFile file_of(FileState state, uint64_t bytes) {
  BlockFile file;
  file.state = state;
  file.file_bytes = bytes;
  return file;
}

void add_file(BlockIndex& index, uint32_t n, uint64_t bytes,
              FileState state = FileState::kDurable) {
  const BlockHash hash = key(n);
  LockedEntry locked(index, hash);
  locked.get_or_add().file = file_of(state, bytes);
}

TEST(BlockIndex, StartsEmpty) {
  testing::proves("IDX-01");
  BlockIndex index;
  EXPECT_EQ(index.totals().entries, 0u);
  EXPECT_EQ(index.totals().file_bytes, 0u);
  EXPECT_TRUE(index.keys().empty());
}

TEST(BlockIndex, TotalsFollowAddReplaceResizeAndErase) {
  testing::proves("IDX-02", "IDX-03", "IDX-05", "IDX-12", "IDX-14");
  BlockIndex index;
  add_file(index, 1, 1024);
  EXPECT_EQ(index.totals().file_bytes, 1024u);
  add_file(index, 1, 2048);
  EXPECT_EQ(index.totals().files, 1u);
  EXPECT_EQ(index.totals().file_bytes, 2048u);
  add_file(index, 2, 100, FileState::kIncompatible);
  EXPECT_EQ(index.totals().servable, 1u);
  EXPECT_EQ(index.totals().incompatible, 1u);
  {
    const BlockHash hash = key(1);
    LockedEntry locked(index, hash);
    locked.erase();
    EXPECT_EQ(locked.get(), nullptr);
  }
  EXPECT_EQ(index.totals().entries, 1u);
  EXPECT_EQ(index.totals().file_bytes, 100u);
}

TEST(BlockIndex, UnknownKeysChangeNothing) {
  testing::proves("IDX-04", "IDX-06", "IDX-11");
  BlockIndex index;
  add_file(index, 1, 10);
  const BlockHash unknown = key(2);
  LockedEntry locked(index, unknown);
  EXPECT_EQ(locked.get(), nullptr);
  EXPECT_EQ(index.totals().entries, 1u);
}

TEST(BlockIndex, EveryKeyIsListedOnce) {
  testing::proves("IDX-13");
  BlockIndex index;
  for (uint32_t n = 0; n < 500; ++n) add_file(index, n, 1);
  std::vector<BlockHash> keys = index.keys();
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(keys.size(), 500u);
  EXPECT_EQ(std::unique(keys.begin(), keys.end()), keys.end());
}

TEST(BlockIndex, WaitersSeeTheEndOfARemoval) {
  testing::proves("RUL-51");
  BlockIndex index;
  add_file(index, 1, 10, FileState::kRemoving);
  bool gone = false;
  std::thread waiter([&] {
    const BlockHash hash = key(1);
    LockedEntry locked(index, hash);
    locked.wait_until_idle();
    gone = locked.get() == nullptr;
  });
  {
    const BlockHash hash = key(1);
    LockedEntry locked(index, hash);
    locked.get()->file = {};
    locked.erase_if_empty();
    locked.notify();
  }
  waiter.join();
  EXPECT_TRUE(gone);
  EXPECT_EQ(index.totals().entries, 0u);
}

TEST(BlockIndex, TotalsEqualTheSumUnderConcurrency) {
  testing::proves("IDX-17");
  BlockIndex index;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&index, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 3000; ++i) {
        const BlockHash hash = key(random() % 50);
        LockedEntry locked(index, hash);
        if (random() % 3 == 0 && locked.get() != nullptr) {
          locked.erase();
        } else {
          locked.get_or_add().file = file_of(FileState::kDurable, random() % 1000);
          locked.touch(1);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  uint64_t sum = 0;
  const std::vector<BlockHash> keys = index.keys();
  for (const BlockHash& hash : keys) {
    LockedEntry locked(index, hash);
    sum += locked.get()->file.file_bytes;
  }
  EXPECT_EQ(index.totals().file_bytes, sum);
  EXPECT_EQ(index.totals().entries, keys.size());
  EXPECT_EQ(index.order().oldest(1000).size(), keys.size());
}

}  // namespace
}  // namespace kvkeep
