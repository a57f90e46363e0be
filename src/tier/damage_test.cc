// What a disk may do to a block: every change is a miss with its reason, never other bytes.
#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "testing/proves.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using testing::blk;
using testing::Op;
using testing::proves;
using testing::TestBlock;
using testing::TestStore;

class DamageTest : public ::testing::Test {
 protected:
  DamageTest() {
    store_.open();
    store_.save_and_write(block_);
    path_ = store_.path(block_);
    good_ = *store_.disk->read_all(path_);
  }
  CacheStats stats() { return store_.cache->stats(); }
  // The miss that a load of the changed file is, without and with a restart in between; then the
  // file as it was loads again.
  void expect_miss_then_recovery(const std::string& bad, std::set<std::string> reasons) {
    for (const bool restart : {false, true}) {
      store_.disk->write_all(path_, bad);
      if (restart) store_.restart();
      const std::string got = store_.load(block_);
      EXPECT_TRUE(reasons.count(got) == 1) << got << (restart ? " after a restart" : "");
      EXPECT_NE(store_.load(block_), "disk");
      store_.disk->write_all(path_, good_);
      store_.restart();
      ASSERT_EQ(store_.load(block_), "disk");
    }
  }

  TestStore store_;
  TestBlock block_ = blk(1);
  std::string path_, good_;
};

TEST_F(DamageTest, AFlippedBitIsDamagedQuarantinedAndSavedAgain) {
  proves("ERR-03", "RUL-14", "DEF-11", "ERR-05", "DEF-38");
  store_.disk->flip_bit(path_, 8 * good_.size() - 1);
  EXPECT_EQ(store_.load(block_), "damaged");
  EXPECT_FALSE(store_.cache->has_block(block_.hash));
  EXPECT_FALSE(store_.disk->read_all(path_).has_value());
  EXPECT_EQ(stats().quarantined, 1u);
  EXPECT_EQ(stats().errors, 1u);
  EXPECT_EQ(stats().misses, 0u);
  EXPECT_GT(stats().quarantine_bytes, 0u);
  EXPECT_EQ(store_.load(block_), "damaged");  // Still the reason, from memory.
  store_.save_and_write(block_);
  EXPECT_EQ(store_.load(block_), "disk");
}

TEST_F(DamageTest, EveryKindOfChangeIsAMiss) {
  proves("DEF-39", "DEF-70", "LOAD-07", "SCAN-10");
  const std::set<std::string> broken{"damaged", "unreadable"};
  expect_miss_then_recovery(good_.substr(0, good_.size() - 1), broken);
  expect_miss_then_recovery(good_.substr(0, good_.size() / 2), broken);
  expect_miss_then_recovery(good_.substr(0, 7), broken);
  expect_miss_then_recovery("", broken);
  expect_miss_then_recovery(good_ + '\0', broken);
  expect_miss_then_recovery(std::string(good_.size(), '\0'), broken);
  store_.save_and_write(blk(2));
  expect_miss_then_recovery(*store_.disk->read_all(store_.path(blk(2))), broken);  // Another block.
}

TEST_F(DamageTest, AnotherVersionIsNotServedButCounted) {
  proves("DEF-31", "DEF-32", "DEF-40");
  std::string other = good_;
  const std::string key = "\"omlx_cache_format_version\":\"";
  other[other.find(key) + key.size()] = '1';
  store_.disk->write_all(path_, other);
  store_.restart();
  EXPECT_EQ(store_.load(block_), "version");
  EXPECT_EQ(stats().incompatible_files, 1u);
  EXPECT_EQ(store_.block_bytes(), good_.size());
  store_.save_and_write(block_);  // A save replaces it.
  EXPECT_EQ(store_.load(block_), "disk");
  EXPECT_EQ(stats().incompatible_files, 0u);
  EXPECT_EQ(store_.block_bytes(), store_.file_bytes(block_));
}

TEST_F(DamageTest, AShortReadIsContinuedOrAMiss) {
  store_.files->plan().short_reads(path_, 1000);
  EXPECT_EQ(store_.load(block_), "disk");
  store_.files->plan().clear();
  store_.files->plan().end_reads_at(path_, good_.size() - 1);
  EXPECT_EQ(store_.load(block_), "damaged");
}

TEST_F(DamageTest, ALinkInPlaceOfAFileIsNotFollowed) {
  proves("DEF-69");
  store_.disk->remove_tree(path_);
  store_.disk->make_link(path_);
  EXPECT_EQ(store_.load(block_), "unreadable");
  store_.restart();
  EXPECT_EQ(store_.load(block_), "absent");
  EXPECT_EQ(stats().foreign_files, 1u);
}

TEST_F(DamageTest, AFileReplacedByAnotherLayoutIsNotServed) {
  proves("LOAD-16");
  TestStore other;
  other.open();
  TestBlock changed = block_;
  changed.input.model_name = "n";  // Same key, same size.
  other.save_and_write(changed);
  const std::string bytes = *other.disk->read_all(other.path(changed));
  ASSERT_EQ(bytes.size(), good_.size());
  store_.disk->write_all(path_, bytes);
  EXPECT_EQ(store_.load(block_), "layout");
  EXPECT_FALSE(store_.cache->has_block(block_.hash));
}

TEST_F(DamageTest, FilesWithoutADigestCanBeRefused) {
  proves("RUL-16");
  TestStore seed;
  seed.options.profile = Profile::kSeedExact;
  seed.open();
  seed.save_and_write(block_);
  EXPECT_EQ(seed.load(block_), "disk");
  EXPECT_EQ(seed.cache->stats().unverified_loads, 1u);
  store_.disk->write_all(path_, *seed.disk->read_all(path_));
  store_.restart();
  EXPECT_EQ(store_.load(block_), "disk");
  EXPECT_EQ(stats().unverified_loads, 1u);
  store_.options.require_digest = true;
  store_.restart();
  EXPECT_EQ(store_.load(block_), "undigested");
}

TEST_F(DamageTest, AWriteThatFailsLosesTheBlockByNameAndNothingElse) {
  proves("ERR-01", "ERR-02", "ERR-09", "DEF-14", "LIFE-03");
  const std::vector<std::pair<Op, int>> faults{
      {Op::kCreate, EIO}, {Op::kAppend, EIO}, {Op::kRename, ENOSPC}, {Op::kRename, EDQUOT}};
  for (const auto& [op, error] : faults) {
    store_.files->plan().fail(op, "", error);
    ASSERT_EQ(store_.save(blk(2)), "queued");
    store_.executor->run_all();
    store_.files->plan().clear();
    EXPECT_EQ(store_.load(blk(2)), "absent") << name_of(op);
    const auto report = store_.cache->flush(std::nullopt);
    ASSERT_TRUE(report.ok());
    ASSERT_EQ(report->failed.size(), 1u) << name_of(op);
    EXPECT_EQ(report->failed[0], blk(2).hash);
    EXPECT_EQ(store_.load(block_), "disk");
    EXPECT_EQ(store_.block_bytes(), good_.size());
  }
  EXPECT_EQ(stats().ssd_write_drops, faults.size());
  EXPECT_EQ(stats().refused(Refusal::kNoSpace), 1u);
  EXPECT_EQ(stats().refused(Refusal::kQuota), 1u);
  EXPECT_EQ(stats().refused(Refusal::kIo), 2u);
  EXPECT_TRUE(store_.logger->contains("SSD cache disk full"));
  for (const std::string& path : store_.disk->paths())
    EXPECT_EQ(path.find(".tmp"), std::string::npos) << path;
}

TEST_F(DamageTest, AStoreWithoutItsMarkIsNotFilledAgain) {
  proves("RUL-36");
  // The drive was unplugged; an empty mount point is left.
  store_.disk->remove_tree(kServiceDir);
  for (const char dir : kSubdirs) store_.disk->remove_tree(std::string(1, dir));
  ASSERT_EQ(store_.save(blk(2)), "queued");
  store_.executor->run_all();
  EXPECT_EQ(store_.disk->paths(), std::vector<std::string>{"CACHEDIR.TAG"});
  EXPECT_EQ(store_.load(block_), "absent");
}

}  // namespace
}  // namespace kvkeep
