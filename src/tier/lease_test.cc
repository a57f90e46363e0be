// Leases: what stays while somebody is about to use it. And blocks that may not go to disk.
#include <gtest/gtest.h>

#include "kvkeep/token_digest.h"
#include "testing/proves.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using testing::proves;
using testing::sized;
using testing::TestBlock;
using testing::TestStore;

constexpr uint64_t kBlock = 4096;  // Bytes of every block here, as image and as file.
constexpr Duration kMinute = std::chrono::seconds(60);

TestBlock block(uint64_t k) { return sized(k, kBlock); }

class LeaseTest : public ::testing::Test {
 protected:
  // A store with room for this many blocks, on disk or in RAM.
  void open_disk(uint64_t blocks) {
    store_.options.min_free_bytes = 0;
    store_.open();
    store_.cache->set_configured_max_size(store_.own_bytes + blocks * kBlock);
  }
  void open_ram(uint64_t blocks) {
    store_.options.hot_only = true;
    store_.options.cache_dir.reset();
    store_.options.hot_max_bytes = blocks * kBlock;
    store_.open();
  }
  void save(std::initializer_list<uint64_t> ks) {
    for (const uint64_t k : ks) {
      store_.save(block(k));
      store_.executor->run_all();
    }
  }
  Lease lease(std::initializer_list<uint64_t> ks, Duration ttl = kMinute) {
    std::vector<BlockHash> keys;
    for (const uint64_t k : ks) keys.push_back(block(k).hash);
    auto lease = store_.cache->lease(keys, ttl, "a test");
    EXPECT_TRUE(lease.ok()) << lease.status().to_string();
    return *std::move(lease);
  }
  bool has(uint64_t k) { return store_.cache->has_block(block(k).hash); }

  TestStore store_;
};

TEST_F(LeaseTest, HoldsUpToTheFirstKeyThatALoadWouldNotFind) {
  proves("RUL-41");
  open_disk(9);
  save({1, 2, 4});
  const Lease held = lease({1, 2, 3, 4});
  ASSERT_EQ(held.size(), 2u);
  EXPECT_EQ(held.blocks()[0].source, Source::kDisk);
  EXPECT_EQ(held.end(), MissReason::kAbsent);
  EXPECT_EQ(lease({1, 2}).end(), std::nullopt);
  EXPECT_EQ(lease({3}).size(), 0u);
  EXPECT_EQ(store_.cache->stats().lookups, 0u);
}

TEST_F(LeaseTest, EvictionOnDiskTakesOthersUntilTheLeaseEnds) {
  proves("RUL-41");
  open_disk(3);
  save({1, 2, 3});
  Lease held = lease({1});
  save({4});
  EXPECT_TRUE(has(1));
  EXPECT_FALSE(has(2));
  held.release();
  save({5});
  EXPECT_FALSE(has(1));
}

TEST_F(LeaseTest, OneThatIsToLeaveFirstStaysUntilTheLeaseEnds) {
  proves("RUL-41");
  open_disk(3);
  save({1, 2, 3});
  Lease held = lease({3});
  EXPECT_EQ(store_.cache->evict_first(std::vector{block(3).hash}), 1u);
  save({4});
  EXPECT_TRUE(has(3));
  EXPECT_FALSE(has(1));
  held.release();
  save({5});
  EXPECT_FALSE(has(3));
  EXPECT_TRUE(has(2) && has(4) && has(5));
}

TEST_F(LeaseTest, WithEverythingLeasedASaveIsRefusedAndNothingLeaves) {
  proves("RUL-41", "RUL-01");
  open_disk(2);
  save({1, 2});
  const Lease held = lease({1, 2});
  save({3});
  EXPECT_TRUE(has(1) && has(2));
  EXPECT_FALSE(has(3));
  EXPECT_EQ(store_.cache->stats().refused(Refusal::kNoSpace), 1u);
  EXPECT_LE(store_.block_bytes(), 2 * kBlock);
}

TEST_F(LeaseTest, EvictionFromRamTakesOthersWhereThatIsTheLastTier) {
  proves("RUL-41");
  open_ram(3);
  save({1, 2, 3});
  Lease held = lease({1});
  save({4});
  EXPECT_TRUE(has(1));
  EXPECT_FALSE(has(2));
  held.release();
  save({5, 6, 7});
  EXPECT_FALSE(has(1));
}

TEST_F(LeaseTest, ExpiresByTheClock) {
  proves("RUL-41");
  open_disk(2);
  save({1, 2});
  const Lease held = lease({1}, kMinute);
  store_.clock->advance(kMinute);
  save({3});
  EXPECT_FALSE(has(1));
}

TEST_F(LeaseTest, TwoLeasesEndOneByOne) {
  proves("RUL-41");
  open_disk(2);
  save({1, 2});
  Lease first = lease({1});
  Lease second = lease({1});
  first.release();
  first.release();
  save({3});
  EXPECT_TRUE(has(1));
  second.release();
  save({4});
  EXPECT_FALSE(has(1));
}

TEST_F(LeaseTest, ALeaseOnAnEarlierStayOfTheBlockDoesNotTouchTheNewOne) {
  proves("RUL-41", "RUL-25");
  open_disk(2);
  save({1, 2});
  Lease old = lease({1});
  ASSERT_TRUE(store_.cache->delete_block(block(1).hash, true).ok());
  save({1});
  const Lease fresh = lease({1});
  EXPECT_NE(fresh.blocks()[0].generation, old.blocks()[0].generation);
  old.release();
  save({3, 4});
  EXPECT_TRUE(has(1));
}

TEST_F(LeaseTest, DeletionIsRefusedNamingTheOwnerUnlessForced) {
  proves("RUL-41");
  open_disk(2);
  save({1});
  const Lease held = lease({1});
  const auto refused = store_.cache->delete_block(block(1).hash);
  EXPECT_EQ(refused.status().code(), Code::kFailedPrecondition);
  EXPECT_NE(refused.status().message().find("leased by a test"), std::string::npos);
  EXPECT_TRUE(has(1));
  EXPECT_TRUE(*store_.cache->delete_block(block(1).hash, true));
  EXPECT_FALSE(has(1));
}

TEST_F(LeaseTest, ASweepLeavesLeasedBlocksToTheNextOne) {
  proves("RUL-41");
  store_.options.model_name = "m";
  open_disk(9);
  TestBlock kv = block(1);
  kv.input.model_name = "m";
  kv.input.layer_types = std::vector<std::string>(kv.input.layers.size(), "KVCache");
  ASSERT_EQ(store_.save(kv), "queued");
  store_.executor->run_all();
  Lease held = lease({1});
  const std::vector<std::string> other(kv.input.layers.size(), "RotatingKVCache");
  ASSERT_TRUE(store_.cache->set_expected_layer_types(other, {}));
  EXPECT_EQ(store_.cache->sweep_stale_layouts(), 0u);
  EXPECT_TRUE(has(1));
  held.release();
  EXPECT_EQ(store_.cache->sweep_stale_layouts(), 1u);
  EXPECT_FALSE(has(1));
}

TEST_F(LeaseTest, OutlivesTheCacheAndRefusesNonsense) {
  proves("RUL-41");
  open_disk(2);
  save({1});
  const Lease held = lease({1});
  EXPECT_EQ(store_.cache->lease({}, Duration::zero(), "x").status().code(), Code::kInvalidArgument);
  store_.close();
}

class HotOnlyBlockTest : public LeaseTest {
 protected:
  void open_with_hot(uint64_t blocks) {
    store_.options.hot_max_bytes = blocks * kBlock;
    open_disk(9);
  }
  static TestBlock in_ram(uint64_t k) {
    TestBlock made = block(k);
    made.input.residency = Residency::kHotOnly;
    return made;
  }
};

TEST_F(HotOnlyBlockTest, IsNeverWrittenAndGoneWithTheProcess) {
  proves("RUL-26");
  open_with_hot(3);
  EXPECT_EQ(store_.save(in_ram(1)), "stored");
  store_.flush();
  EXPECT_EQ(store_.cache->stats().num_files, 0u);
  EXPECT_EQ(store_.load(block(1)), "hot");
  store_.restart();
  EXPECT_EQ(store_.load(block(1)), "absent");
}

TEST_F(HotOnlyBlockTest, LeavingRamCountsAsEvicted) {
  proves("RUL-26");
  open_with_hot(2);
  store_.save(in_ram(1));
  store_.save(block(2));
  store_.save(block(3));
  store_.executor->run_all();
  EXPECT_EQ(store_.load(block(1)), "evicted");
  EXPECT_EQ(store_.cache->stats().hot_cache_evictions, 1u);
  EXPECT_FALSE(store_.disk->read_all(store_.path(block(1))).has_value());
}

TEST_F(HotOnlyBlockTest, IsWrittenOnceASaveAllowsIt) {
  proves("RUL-26");
  open_with_hot(3);
  store_.save(in_ram(1));
  EXPECT_EQ(store_.save(block(1)), "present");
  store_.restart();
  EXPECT_EQ(store_.load(block(1)), "disk");
}

TEST_F(HotOnlyBlockTest, WithoutAHotTierItIsRefused) {
  proves("RUL-26");
  open_disk(9);
  EXPECT_EQ(store_.save(in_ram(1)), "too_large");
  EXPECT_FALSE(has(1));
}

class TokensTest : public LeaseTest {
 protected:
  TokensTest() {
    open_disk(9);
    stored_.input.tokens = digest_of({1, 2, 3});
    EXPECT_EQ(store_.save(stored_), "queued");
    store_.executor->run_all();
  }
  static TokenDigest digest_of(std::vector<uint32_t> tokens) { return *token_digest(tokens); }
  std::string load(const TokenDigest& tokens) {
    const BatchResult loaded =
        store_.cache->load_blocks({&stored_.hash, 1}, BatchMode::kEach, {true, {&tokens, 1}});
    return TestStore::outcome(stored_, loaded.front());
  }
  TestBlock stored_ = block(1);
};

TEST_F(TokensTest, ABlockOfOtherTokensIsAMissThatSaysSo) {
  proves("RUL-20", "RUL-32");
  EXPECT_EQ(load(digest_of({1, 2, 3})), "disk");
  EXPECT_EQ(load(digest_of({1, 2, 4})), "tokens");
  EXPECT_EQ(store_.cache->stats().missed(MissReason::kTokens), 1u);
  EXPECT_TRUE(has(1));
}

TEST_F(TokensTest, TheDigestIsInTheFileAndSurvivesARestart) {
  proves("RUL-20");
  // printf '\1\0\0\0\2\0\0\0\3\0\0\0' | sha256sum
  const std::string hex = "4636993d3e1da4e9d6b8f87b79e8f7c6d018580d52661950eabc3845c5897a4d";
  const std::string file = *store_.disk->read_all(store_.path(stored_));
  EXPECT_NE(file.find("\"kvkeep_profile\":\"1\",\"kvkeep_tokens\":\"" + hex + "\",\"kvkeep_xxh3\""),
            std::string::npos);
  store_.restart();
  EXPECT_EQ(load(digest_of({9})), "tokens");
  EXPECT_EQ(load(digest_of({1, 2, 3})), "disk");
}

TEST_F(TokensTest, WithoutADigestOnOneSideThereIsNothingToCompare) {
  proves("RUL-20");
  EXPECT_EQ(store_.load(stored_), "disk");
  TestBlock plain = block(2);
  ASSERT_EQ(store_.save(plain), "queued");
  stored_ = plain;
  EXPECT_EQ(load(digest_of({7})), "pending");
}

}  // namespace
}  // namespace kvkeep
