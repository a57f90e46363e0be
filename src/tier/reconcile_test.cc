// Others change the directory while a cache has it open.
#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

#include "testing/proves.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using std::chrono::seconds;
using testing::blk;
using testing::key_of;
using testing::Op;
using testing::proves;
using testing::TestBlock;
using testing::TestStore;

class ReconcileTest : public ::testing::Test {
 protected:
  ReconcileTest() {
    store_.options.reconcile_interval = seconds(60);
    store_.open();
    other_.open();
  }
  // The file of a block, as another program writes it.
  std::string file_of(const TestBlock& block) {
    if (!other_.disk->read_all(other_.path(block))) other_.save_and_write(block);
    return *other_.disk->read_all(other_.path(block));
  }
  void put(const TestBlock& block) { store_.disk->write_all(store_.path(block), file_of(block)); }
  void date(const TestBlock& block, double mtime) {
    ASSERT_TRUE(store_.disk->set_mtime(store_.path(block), mtime).ok());
  }
  void take_away(uint64_t k) { store_.disk->remove_tree(store_.path(blk(k))); }
  // A minute passes.
  void reconcile() {
    store_.clock->advance(seconds(60));
    store_.executor->run_all();
  }
  CacheStats stats() { return store_.cache->stats(); }
  uint64_t bytes() { return file_of(blk(0)).size(); }

  TestStore store_;
  TestStore other_;
};

TEST_F(ReconcileTest, FilesThatVanishedAreForgotten) {
  proves("RUL-53");
  store_.save_and_write(blk(1));
  store_.save_and_write(blk(2));
  take_away(1);
  EXPECT_TRUE(store_.cache->has_block(blk(1).hash));
  store_.clock->advance(seconds(59));
  store_.executor->run_all();
  EXPECT_TRUE(store_.cache->has_block(blk(1).hash));
  store_.clock->advance(seconds(1));
  store_.executor->run_all();
  EXPECT_FALSE(store_.cache->has_block(blk(1).hash));
  EXPECT_EQ(store_.block_bytes(), bytes());
  EXPECT_EQ(store_.load(blk(1)), "absent");
  EXPECT_EQ(store_.load(blk(2)), "disk");
  take_away(2);
  reconcile();  // And every minute from then on.
  EXPECT_EQ(store_.cache->tracked_count(), 0u);
  EXPECT_EQ(store_.block_bytes(), 0u);
}

TEST_F(ReconcileTest, FilesThatAppearedAreTakenUp) {
  put(blk(1));
  EXPECT_EQ(store_.load(blk(1)), "absent");
  reconcile();
  EXPECT_TRUE(store_.cache->has_block(blk(1).hash));
  EXPECT_EQ(store_.load(blk(1)), "disk");
  EXPECT_EQ(store_.block_bytes(), bytes());
  EXPECT_EQ(stats().num_files, 1u);
  EXPECT_TRUE(*store_.cache->delete_block(blk(1).hash));
  EXPECT_EQ(store_.block_bytes(), 0u);
}

TEST_F(ReconcileTest, WhatAppearedIsJudgedAsAtOpen) {
  store_.close();
  store_.options.model_name = "m";
  store_.open();
  TestBlock foreign = blk(1);
  foreign.input.model_name = "x";
  put(foreign);
  store_.disk->write_all(store_.path(blk(2)), "not a block");
  store_.disk->write_all("0/readme", "hello");
  reconcile();
  EXPECT_EQ(store_.load(foreign), "model");
  EXPECT_EQ(store_.load(blk(2)), "unreadable");
  EXPECT_EQ(stats().incompatible_files, 2u);
  EXPECT_EQ(stats().foreign_files, 1u);
}

TEST_F(ReconcileTest, OnlyWhatChangedIsRead) {
  for (uint64_t k = 1; k <= 3; ++k) store_.save_and_write(blk(k));
  put(blk(4));
  store_.files->clear_record();
  reconcile();
  EXPECT_EQ(store_.files->count(Op::kOpenRead), 1u);
  EXPECT_EQ(store_.files->count(Op::kOpenRead, store_.path(blk(4))), 1u);
  EXPECT_EQ(store_.files->count(Op::kListDir), 19u);  // The root, 16 and .kvkeep with its own.
}

TEST_F(ReconcileTest, AFileOfAnotherSizeIsReadAgain) {
  store_.save_and_write(blk(1));
  const uint64_t before = store_.block_bytes();
  TestBlock longer = blk(1);
  longer.input.parent = key_of(7);  // The same key, another file.
  store_.disk->write_all(store_.path(longer), file_of(longer));
  reconcile();
  EXPECT_GT(store_.block_bytes(), before);
  EXPECT_EQ(store_.load(longer), "disk");
  EXPECT_EQ(stats().num_files, 1u);
}

TEST_F(ReconcileTest, TooManyNewFilesBringTheStoreBackUnderItsLimit) {
  proves("RUL-53");
  store_.close();
  store_.options.max_size_bytes = 3 * bytes() + store_.own_bytes;
  store_.open();
  for (uint64_t k = 1; k <= 6; ++k) {
    put(blk(k));
    date(blk(k), 1000.0 + static_cast<double>(k));
  }
  reconcile();
  EXPECT_EQ(store_.block_bytes(), 3 * bytes());
  for (uint64_t k = 4; k <= 6; ++k) EXPECT_EQ(store_.load(blk(k)), "disk") << k;
}

TEST_F(ReconcileTest, WhatAppearedTakesItsPlaceByTime) {
  proves("IDX-18");
  store_.close();
  store_.options.max_size_bytes = 3 * bytes() + store_.own_bytes;
  store_.open();
  store_.save_and_write(blk(1));
  store_.save_and_write(blk(2));
  put(blk(3));
  date(blk(3), 1000);  // Long ago.
  reconcile();
  store_.save_and_write(blk(4));
  EXPECT_EQ(store_.load(blk(3)), "evicted");
  EXPECT_EQ(store_.load(blk(1)), "disk");
}

TEST_F(ReconcileTest, DirectoriesAreCountedAgain) {
  proves("RUL-53");
  TestStore store({.block_bytes = 4096, .directory_bytes = 4096});
  store.options.reconcile_interval = seconds(60);
  store.open();
  const uint64_t before = store.cache->tracked_size();
  store.disk->write_all(".kvkeep/notes", std::string(10'000, 'x'));
  store.clock->advance(seconds(60));
  store.executor->run_all();
  EXPECT_EQ(store.cache->tracked_size(), before + 12'288);
  EXPECT_EQ(store.cache->stats().allocated_bytes, store.disk->allocated_bytes());
  store.disk->remove_tree(".kvkeep/notes");
  store.clock->advance(seconds(60));
  store.executor->run_all();
  EXPECT_EQ(store.cache->tracked_size(), before);
}

TEST_F(ReconcileTest, BlocksOnTheirWayAreLeftAlone) {
  ASSERT_EQ(store_.save(blk(1)), "queued");  // No file yet.
  const uint64_t charge = store_.block_bytes();
  auto held = store_.files->plan().block(Op::kListDir, "0");
  store_.clock->advance(seconds(60));
  std::thread other([this] { store_.executor->run_all(); });
  ASSERT_TRUE(held.wait_until_blocked());
  ASSERT_EQ(store_.save(blk(2)), "queued");
  EXPECT_EQ(store_.load(blk(2)), "pending");
  held.release();
  other.join();
  store_.executor->run_all();
  EXPECT_EQ(store_.load(blk(1)), "disk");
  EXPECT_EQ(store_.load(blk(2)), "disk");
  EXPECT_EQ(store_.block_bytes(), 2 * charge);
}

TEST_F(ReconcileTest, AFileWrittenWhileListingIsNotTakenForVanished) {
  auto held = store_.files->plan().block(Op::kListDir, "f");  // The last directory.
  store_.clock->advance(seconds(60));
  std::thread listing([this] { store_.executor->run(1); });
  ASSERT_TRUE(held.wait_until_blocked());
  uint64_t k = 1;
  while (store_.path(blk(k))[0] == 'f') ++k;  // Its directory has been listed already.
  store_.save_and_write(blk(k));
  held.release();
  listing.join();
  EXPECT_EQ(store_.load(blk(k)), "disk");
}

TEST_F(ReconcileTest, AFileRemovedWhileItIsReadIsNotTakenUp) {
  put(blk(1));
  auto held = store_.files->plan().block(Op::kRead, store_.path(blk(1)));
  store_.clock->advance(seconds(60));
  std::thread listing([this] { store_.executor->run_all(); });
  ASSERT_TRUE(held.wait_until_blocked());
  take_away(1);
  held.release();
  listing.join();
  EXPECT_EQ(store_.cache->tracked_count(), 0u);
  EXPECT_EQ(store_.block_bytes(), 0u);
}

TEST_F(ReconcileTest, AStoreThatIsGoneIsNotForgotten) {
  store_.save_and_write(blk(1));
  store_.disk->remove_tree(".kvkeep");
  take_away(1);
  reconcile();
  EXPECT_TRUE(store_.cache->has_block(blk(1).hash));
  EXPECT_TRUE(store_.logger->contains("cannot list the store"));
}

TEST_F(ReconcileTest, AListingThatFailsForgetsNothing) {
  store_.save_and_write(blk(1));
  take_away(1);
  store_.files->plan().fail(Op::kListDir, "", EIO, 10);
  reconcile();
  EXPECT_TRUE(store_.cache->has_block(blk(1).hash));
  reconcile();
  EXPECT_FALSE(store_.cache->has_block(blk(1).hash));
}

TEST_F(ReconcileTest, AClosedCacheIsNotReconciled) {
  ASSERT_TRUE(store_.cache->close(std::nullopt).ok());
  store_.files->clear_record();
  reconcile();
  EXPECT_TRUE(store_.files->calls().empty());
  EXPECT_EQ(store_.executor->delayed(), 0u);
}

}  // namespace
}  // namespace kvkeep
