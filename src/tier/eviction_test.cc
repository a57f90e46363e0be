// Which blocks leave for others, and that blocks which continue others leave first.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "testing/proves.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using testing::blk;
using testing::BlockedCalls;
using testing::key_of;
using testing::Op;
using testing::proves;
using testing::TestBlock;
using testing::TestStore;

// Block k, continuing block `parent`. All have the same size.
TestBlock child(uint64_t k, uint64_t parent) {
  TestBlock block = blk(k);
  block.input.parent = key_of(parent);
  return block;
}

class EvictionTest : public ::testing::Test {
 protected:
  void open_for_blocks(uint64_t count) {
    TestStore measure;
    measure.open();
    measure.save_and_write(child(0, 1));
    bytes_ = measure.file_bytes(child(0, 1));
    store_.options.max_size_bytes = count * bytes_ + measure.own_bytes;
    store_.options.quarantine_max_bytes = 0;
    store_.open();
  }
  // A second apart, written at once.
  void save(const TestBlock& block) {
    store_.save_and_write(block);
    store_.clock->advance(std::chrono::seconds(1));
  }
  // Which of the blocks first..last are there, without touching them.
  std::string present(uint64_t first, uint64_t last) {
    std::string all;
    for (uint64_t k = first; k <= last; ++k) {
      if (store_.cache->has_block(key_of(k))) all += std::to_string(k) + " ";
    }
    return all;
  }
  CacheStats stats() { return store_.cache->stats(); }

  TestStore store_;
  uint64_t bytes_ = 0;
};

TEST_F(EvictionTest, ABlockStaysWhileOneThatContinuesItIsThere) {
  proves("RUL-27");
  open_for_blocks(3);
  save(child(1, 100));
  save(child(2, 1));
  save(child(3, 100));
  save(child(4, 100));
  EXPECT_EQ(present(1, 4), "1 3 4 ");
  save(child(5, 100));  // Block 1 has no child any more, and is the oldest.
  EXPECT_EQ(present(1, 5), "3 4 5 ");
}

TEST_F(EvictionTest, ChainsAreKnownAgainAfterARestart) {
  open_for_blocks(3);
  save(child(1, 100));
  save(child(2, 1));
  save(child(3, 100));
  EXPECT_EQ(store_.load(child(1, 100)), "disk");  // Now its file is the youngest: the scan meets
  store_.restart();                               // the child first.
  save(child(4, 100));
  save(child(5, 100));
  EXPECT_EQ(present(1, 5), "1 4 5 ");
}

TEST_F(EvictionTest, BlocksThatNobodyWantsLeaveFirst) {
  open_for_blocks(4);
  for (uint64_t k : {1, 2}) save(child(k, 100));
  save(child(3, 100));
  save(child(4, 3));
  EXPECT_EQ(store_.cache->evict_first(std::vector{key_of(3), key_of(4), key_of(77)}), 2u);
  save(child(5, 100));
  EXPECT_EQ(present(1, 5), "1 2 3 5 ");
  save(child(6, 100));
  EXPECT_EQ(present(1, 6), "1 2 5 6 ");
  save(child(7, 100));  // From here on as ever.
  EXPECT_EQ(present(1, 7), "2 5 6 7 ");
}

TEST_F(EvictionTest, OneThatIsUsedAfterAllStays) {
  open_for_blocks(3);
  for (uint64_t k : {1, 2, 3}) save(child(k, 100));
  EXPECT_EQ(store_.cache->evict_first(std::vector{key_of(2), key_of(3)}), 2u);
  EXPECT_EQ(store_.load(child(2, 100)), "disk");
  EXPECT_EQ(store_.save(child(3, 100)), "present");
  save(child(4, 100));
  EXPECT_EQ(present(1, 4), "2 3 4 ");
}

TEST_F(EvictionTest, OthersStayWhileOneThatIsToLeaveFirstIsRemoved) {
  open_for_blocks(5);
  for (uint64_t k : {1, 2}) save(child(k, 100));
  save(child(3, 100));
  save(child(4, 3));
  save(child(5, 4));
  EXPECT_EQ(store_.cache->evict_first(std::vector{key_of(3), key_of(4), key_of(5)}), 3u);
  BlockedCalls held = store_.files->plan().block(Op::kUnlink, "");
  const auto make_room = [this] { store_.cache->make_room(2 * bytes_, {}, true); };
  std::thread first(make_room);
  ASSERT_TRUE(held.wait_until_blocked());  // With block 5.
  std::atomic<bool> started = false;
  std::thread second([&] {
    started = true;
    make_room();
  });
  // Long enough for the second to take another block, if it does.
  for (int turns = 0; turns < 1000 || !started; ++turns) std::this_thread::yield();
  held.release();
  first.join();
  second.join();
  EXPECT_EQ(present(1, 2), "1 2 ");
  EXPECT_EQ(present(4, 5), "");  // Each may have taken the last one that was needed.
}

TEST_F(EvictionTest, PlainLruKnowsNoChains) {
  proves("RUL-27");
  store_.options.eviction = Eviction::kLru;
  open_for_blocks(3);
  save(child(1, 100));
  save(child(2, 1));
  save(child(3, 100));
  save(child(4, 100));
  EXPECT_EQ(present(1, 4), "2 3 4 ");
}

TEST_F(EvictionTest, BlocksThatContinueEachOtherInACircleStillLeave) {
  open_for_blocks(2);
  save(child(1, 2));
  save(child(2, 1));
  save(child(3, 100));
  save(child(4, 100));
  EXPECT_EQ(present(1, 4), "3 4 ");
}

TEST_F(EvictionTest, WhereNoLeafCanGoAnInnerBlockDoes) {
  open_for_blocks(2);
  save(child(1, 100));
  save(child(2, 1));
  store_.files->plan().fail_every(Op::kUnlink, store_.path(child(2, 1)), EACCES);
  save(child(3, 100));
  EXPECT_EQ(present(1, 3), "2 3 ");
}

TEST_F(EvictionTest, AmongEquallyOldBlocksTheOneThatIsNotServedGoesFirst) {
  proves("EVICT-03");
  open_for_blocks(3);
  TestBlock other = child(2, 100);
  other.input.model_name = "x";
  store_.save_and_write(child(1, 100));  // All three at the same moment.
  store_.save_and_write(other);
  store_.save_and_write(child(3, 100));
  store_.options.model_name = "m";
  store_.restart();
  EXPECT_EQ(stats().incompatible_files, 1u);
  save(child(4, 100));
  EXPECT_EQ(stats().incompatible_files, 0u);
  EXPECT_EQ(present(1, 4), "1 3 4 ");
}

TEST_F(EvictionTest, AmongEquallyOldBlocksOneThatIsWrittenGoesFirst) {
  proves("EVICT-12");
  open_for_blocks(2);
  ASSERT_EQ(store_.save(child(1, 100)), "queued");
  store_.executor->run_all();
  ASSERT_EQ(store_.save(child(2, 100)), "queued");
  EXPECT_EQ(store_.load(child(1, 100)), "disk");  // Touched last, at the same moment.
  ASSERT_EQ(store_.save(child(3, 100)), "queued");
  EXPECT_EQ(present(1, 3), "2 3 ");
  EXPECT_EQ(stats().writes_cancelled, 0u);
}

TEST_F(EvictionTest, AFileThatCannotBeUnlinkedKeepsItsPlaceInTheOrder) {
  proves("IDX-18", "DEF-33");
  open_for_blocks(3);
  for (uint64_t k = 1; k <= 3; ++k) save(child(k, 100));
  store_.files->plan().fail_every(Op::kUnlink, store_.path(child(1, 100)), EACCES);
  save(child(4, 100));
  EXPECT_EQ(present(1, 4), "1 3 4 ");
  store_.files->plan().clear();
  store_.clock->advance(std::chrono::seconds(61));
  save(child(5, 100));
  EXPECT_EQ(present(1, 5), "3 4 5 ");
}

TEST_F(EvictionTest, AConversationLargerThanTheStoreKeepsItsBeginning) {
  proves("RUL-27");
  open_for_blocks(3);
  save(child(1, 100));
  for (uint64_t k = 2; k <= 6; ++k) {
    EXPECT_EQ(store_.save(child(k, k - 1)), k <= 4 ? "queued" : "no_space");
    store_.executor->run_all();
  }
  EXPECT_EQ(present(1, 6), "1 2 3 ");
  EXPECT_EQ(stats().refused(Refusal::kNoSpace), 3u);
  EXPECT_EQ(stats().evictions, 0u);
}

TEST_F(EvictionTest, RoomForABlockIsNotMadeAtTheCostOfTheOneItContinues) {
  proves("RUL-27", "RUL-41");
  open_for_blocks(2);
  save(child(1, 100));
  save(child(2, 100));
  const auto held =
      store_.cache->lease(std::vector<BlockHash>{key_of(2)}, std::chrono::hours(1), "");
  ASSERT_EQ(store_.save(child(3, 1)), "queued");
  store_.executor->run_all();
  EXPECT_EQ(present(1, 3), "1 2 ");
}

TEST_F(EvictionTest, WhatContinuesABlockThatFoundNoRoomIsNotWrittenEither) {
  proves("RUL-27");
  open_for_blocks(2);
  save(child(1, 100));
  save(child(2, 1));
  ASSERT_EQ(store_.save(child(3, 2)), "queued");
  ASSERT_EQ(store_.save(child(4, 3)), "queued");
  ASSERT_TRUE(store_.executor->run(1));  // 3 finds no room.
  EXPECT_TRUE(*store_.cache->delete_block(key_of(2)));
  store_.executor->run_all();
  EXPECT_EQ(present(1, 4), "1 ");
}

TEST_F(EvictionTest, ABlockWhoseFileHasGoneIsWrittenAgainForOneThatContinuesIt) {
  proves("RUL-27");
  store_.options.hot_max_bytes = 1 << 20;
  store_.options.write_back = false;
  open_for_blocks(2);
  save(child(1, 100));
  EXPECT_EQ(store_.load(child(1, 100)), "disk");  // Hot from here on.
  save(child(2, 100));
  save(child(3, 100));  // The file of block 1 leaves; its copy in RAM stays.
  ASSERT_EQ(stats().evictions, 1u);
  ASSERT_TRUE(store_.cache->has_block(key_of(1)));
  save(child(4, 1));
  store_.restart();
  EXPECT_EQ(present(1, 4), "1 4 ");
}

}  // namespace
}  // namespace kvkeep
