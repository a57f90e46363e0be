// What a cache is for changes while it is open: which blocks are served afterwards.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "testing/proves.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using testing::blk;
using testing::BlockedCalls;
using testing::Op;
using testing::proves;
using testing::TestBlock;
using testing::TestStore;
using Types = std::vector<std::string>;

TestBlock typed(uint64_t k, std::string type, std::optional<double> bits = {}) {
  TestBlock block = testing::sized(k, 2048);
  block.input.layer_types = {{std::move(type)}};
  block.input.meta_states->front() = {MetaValue{int64_t{64}}};
  if (bits) {
    block.input.meta_states->front() = {MetaValue{int64_t{64}}, MetaValue{*bits},
                                        MetaValue{int64_t{0}}};
  }
  return block;
}

TestBlock untyped(uint64_t k) {
  TestBlock block = testing::sized(k, 2048);
  block.input.layer_types.reset();
  block.input.meta_states.reset();
  return block;
}

class CompatibilityTest : public ::testing::Test {
 protected:
  CompatibilityTest() { store_.options.model_name = "m"; }

  std::string encoded(const TestBlock& block, Profile profile = Profile::kExtended) {
    const auto image =
        encode_block(block.hash, block.input, testing::test_context(profile, block), *store_.pool);
    EXPECT_TRUE(image.ok()) << image.status().to_string();
    const BytesView bytes = (*image)->bytes();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  // A file that another cache left, before this one opens.
  void put(const TestBlock& block, std::string model = "m") {
    TestBlock other = block;
    other.input.model_name = std::move(model);
    store_.disk->write_all(store_.path(block), encoded(other));
  }
  bool expect(const Types& types, std::optional<double> bits = {}) {
    return store_.cache->set_expected_layer_types(types, bits);
  }
  size_t sweep() { return store_.cache->sweep_stale_layouts(); }
  bool is_swept() { return store_.cache->expected_layout().is_swept; }
  bool has(const TestBlock& block) { return store_.cache->has_block(block.hash); }
  CacheStats stats() { return store_.cache->stats(); }

  TestStore store_;
};

TEST_F(CompatibilityTest, ASweepTakesBlocksOfTheModelWithOtherLayers) {
  proves("SWEEP-01", "SWEEP-05", "SWEEP-06", "SWEEP-07");
  const auto stale = typed(1, "KVCache"), fitting = typed(2, "ArraysCache");
  const auto foreign = typed(3, "KVCache"), unnamed = typed(4, "KVCache"), plain = untyped(5);
  put(stale);
  put(fitting);
  put(foreign, "n");
  put(unnamed, "");
  put(plain);
  store_.open();
  const uint64_t tracked = store_.cache->tracked_size();
  EXPECT_TRUE(expect({"ArraysCache"}));
  store_.files->clear_record();
  EXPECT_EQ(sweep(), 1u);
  EXPECT_TRUE(store_.files->calls().empty());
  EXPECT_EQ(store_.load(stale), "layout");
  EXPECT_TRUE(has(fitting) && has(unnamed) && has(plain));
  EXPECT_EQ(store_.load(foreign), "model");
  EXPECT_EQ(stats().incompatible_files, 2u);
  EXPECT_EQ(store_.cache->tracked_size(), tracked);
  EXPECT_EQ(store_.disk->read_all(store_.path(stale)), encoded(stale));
}

TEST_F(CompatibilityTest, NamesThatMeanTheSameAreKept) {
  proves("SWEEP-02", "SWEEP-03");
  put(typed(1, "SizedArraysCache"));
  put(typed(2, "PrefillReadyRotatingKVCache"));
  store_.open();
  EXPECT_TRUE(expect({"ArraysCache"}));
  EXPECT_EQ(sweep(), 1u);
  EXPECT_TRUE(has(typed(1, "")) && !has(typed(2, "")));
  EXPECT_TRUE(expect({"RotatingKVCache"}));
  EXPECT_EQ(sweep(), 1u);
  EXPECT_TRUE(!has(typed(1, "")) && has(typed(2, "")));
}

TEST_F(CompatibilityTest, AStoredBufferedNameIsStale) {
  proves("SWEEP-04", "RUL-24");
  // No save writes that name, so one of the same length is replaced in a file without a digest.
  std::string file = encoded(typed(1, "XufferedRotatingKVCache"), Profile::kSeedExact);
  size_t at = 0, replaced = 0;
  while ((at = file.find("Xuffered", at)) != std::string::npos) {
    file[at] = 'B';
    ++replaced;
  }
  ASSERT_EQ(replaced, 2u);
  store_.disk->write_all(store_.path(typed(1, "")), file);
  store_.open();
  ASSERT_TRUE(has(typed(1, "")));
  EXPECT_TRUE(expect({"RotatingKVCache"}));
  EXPECT_EQ(sweep(), 1u);
  EXPECT_FALSE(has(typed(1, "")));
}

TEST_F(CompatibilityTest, ASecondSweepFindsNothingToDo) {
  proves("SWEEP-08");
  put(typed(1, "KVCache"));
  store_.open();
  EXPECT_TRUE(expect({"ArraysCache"}));
  EXPECT_FALSE(is_swept());
  EXPECT_EQ(sweep(), 1u);
  EXPECT_TRUE(is_swept());
  EXPECT_EQ(sweep(), 0u);
}

TEST_F(CompatibilityTest, NothingIsSweptWithoutTypesOrModel) {
  proves("SWEEP-09", "SWEEP-10");
  put(typed(1, "KVCache"));
  store_.open();
  EXPECT_EQ(sweep(), 0u);
  EXPECT_FALSE(is_swept());
  store_.options.model_name = "";
  store_.restart();
  EXPECT_TRUE(expect({"ArraysCache"}));
  EXPECT_EQ(sweep(), 0u);
  EXPECT_FALSE(is_swept());
  EXPECT_TRUE(has(typed(1, "")));
}

TEST_F(CompatibilityTest, ASweepCancelsQueuedBlocksOfOtherLayers) {
  store_.open();
  ASSERT_EQ(store_.save(typed(1, "KVCache")), "queued");
  EXPECT_TRUE(expect({"ArraysCache"}));
  EXPECT_EQ(sweep(), 1u);
  EXPECT_EQ(store_.load(typed(1, "KVCache")), "layout");
  EXPECT_EQ(store_.cache->tracked_count(), 0u);
  store_.executor->run_all();
  EXPECT_FALSE(store_.disk->read_all(store_.path(typed(1, ""))).has_value());
  EXPECT_EQ(stats().writes_cancelled, 1u);
}

TEST_F(CompatibilityTest, ASweepTakesABlockThatIsJustBeingRenamed) {
  store_.open();
  BlockedCalls held = store_.files->plan().block(Op::kRename, "");
  ASSERT_EQ(store_.save(typed(1, "KVCache")), "queued");
  std::thread writer([this] { store_.executor->run_all(); });
  ASSERT_TRUE(held.wait_until_blocked());
  EXPECT_TRUE(expect({"ArraysCache"}));
  std::thread sweeper([this] { EXPECT_EQ(sweep(), 1u); });
  held.release();
  writer.join();
  sweeper.join();
  EXPECT_EQ(store_.load(typed(1, "KVCache")), "layout");
  EXPECT_EQ(stats().incompatible_files, 1u);
}

TEST_F(CompatibilityTest, FilesThatFitAgainReturnToTheirPlace) {
  proves("SWEEP-13", "DEF-53");
  store_.open();
  const auto a = typed(1, "KVCache"), b = typed(2, "KVCache"), c = typed(3, "KVCache");
  for (const auto& block : {a, b, c}) {
    store_.save_and_write(block);
    store_.clock->advance(std::chrono::seconds(1));
  }
  store_.options.max_size_bytes = store_.cache->tracked_size();
  store_.restart();
  EXPECT_TRUE(expect({"ArraysCache"}));
  EXPECT_EQ(sweep(), 3u);
  EXPECT_EQ(store_.cache->size(), 0u);
  EXPECT_TRUE(expect({"KVCache"}));
  EXPECT_EQ(store_.cache->size(), 3u);
  EXPECT_EQ(stats().incompatible_files, 0u);
  EXPECT_EQ(sweep(), 0u);
  store_.save_and_write(typed(4, "KVCache"));
  EXPECT_EQ(store_.load(a), "evicted");
  EXPECT_EQ(store_.load(b), "disk");
  EXPECT_EQ(store_.load(c), "disk");
}

TEST_F(CompatibilityTest, AFileReturnsWhenTheWriteThatWasToReplaceItIsSwept) {
  store_.open();
  store_.save_and_write(typed(1, "KVCache"));
  EXPECT_TRUE(expect({"ArraysCache"}));
  EXPECT_EQ(sweep(), 1u);
  ASSERT_EQ(store_.save(typed(1, "ArraysCache")), "queued");
  EXPECT_TRUE(expect({"KVCache"}));
  EXPECT_EQ(sweep(), 1u);
  store_.executor->run_all();
  EXPECT_EQ(store_.load(typed(1, "KVCache")), "disk");
}

TEST_F(CompatibilityTest, AForgottenBlockReturnsWithAnotherExpectationAndNotWithASweep) {
  store_.open();
  store_.save_and_write(typed(1, "KVCache"));
  EXPECT_TRUE(expect({"TurboQuantKVCache"}));
  EXPECT_TRUE(expect({"KVCache"}));
  EXPECT_TRUE(store_.cache->forget_block(typed(1, "").hash));
  EXPECT_EQ(sweep(), 0u);
  EXPECT_EQ(store_.load(typed(1, "KVCache")), "forgotten");
  EXPECT_FALSE(expect({"KVCache"}));
  EXPECT_EQ(store_.load(typed(1, "KVCache")), "forgotten");
  EXPECT_TRUE(expect({"ArraysCache"}));
  EXPECT_FALSE(has(typed(1, "")));
  EXPECT_TRUE(expect({"KVCache"}));
  EXPECT_EQ(store_.load(typed(1, "KVCache")), "disk");
}

TEST_F(CompatibilityTest, ABlockWhoseDeletionFailedDoesNotReturn) {
  store_.open();
  store_.save_and_write(typed(1, "KVCache"));
  store_.files->plan().fail(Op::kUnlink, "", EACCES);
  EXPECT_FALSE(store_.cache->delete_block(typed(1, "").hash).ok());
  EXPECT_TRUE(expect({"ArraysCache"}));
  EXPECT_TRUE(expect({"KVCache"}));
  EXPECT_EQ(store_.load(typed(1, "KVCache")), "deleted");
}

TEST_F(CompatibilityTest, OnlyBlocksOfTheExpectedDepthSurviveASweep) {
  proves("TQ-04", "TQ-06");
  put(typed(1, "TurboQuantKVCache", 4));
  put(typed(2, "TurboQuantKVCache"));
  put(untyped(3));
  put(typed(4, "TurboQuantKVCache", 6));
  put(typed(5, "BatchTurboQuantKVCache", 6));
  store_.open();
  EXPECT_TRUE(expect({"TurboQuantKVCache"}, 6));
  EXPECT_EQ(sweep(), 3u);
  EXPECT_EQ(store_.load(typed(1, "TurboQuantKVCache", 4)), "bits");
  EXPECT_FALSE(has(untyped(2)) || has(untyped(3)));
  EXPECT_TRUE(has(untyped(4)) && has(untyped(5)));
}

TEST_F(CompatibilityTest, WithoutADepthNothingIsSweptForIt) {
  proves("TQ-05");
  put(typed(1, "TurboQuantKVCache", 4));
  put(typed(2, "TurboQuantKVCache"));
  put(untyped(3));
  store_.open();
  EXPECT_TRUE(expect({"TurboQuantKVCache"}));
  EXPECT_EQ(sweep(), 0u);
  EXPECT_TRUE(has(untyped(1)) && has(untyped(2)) && has(untyped(3)));
}

TEST_F(CompatibilityTest, ALoadInFlightDuringAChangeIsAMiss) {
  proves("RUL-48");
  store_.open();
  store_.save_and_write(typed(1, "KVCache"));
  BlockedCalls held = store_.files->plan().block(Op::kRead, "");
  std::thread reader([this] { EXPECT_EQ(store_.load(typed(1, "KVCache")), "layout"); });
  ASSERT_TRUE(held.wait_until_blocked());
  EXPECT_TRUE(expect({"ArraysCache"}));
  held.release();
  reader.join();
  EXPECT_EQ(stats().missed(MissReason::kLayout), 1u);
  EXPECT_EQ(stats().load_hits, 0u);
}

TEST_F(CompatibilityTest, AWriteIsNotCommittedForAnotherExpectation) {
  proves("RUL-48");
  store_.open();
  ASSERT_EQ(store_.save(typed(1, "KVCache")), "queued");
  ASSERT_EQ(store_.save(typed(2, "KVCache")), "queued");
  BlockedCalls held = store_.files->plan().block(Op::kAppend, "");
  std::thread writer([this] { store_.executor->run_all(); });
  ASSERT_TRUE(held.wait_until_blocked());
  EXPECT_TRUE(expect({"ArraysCache"}));
  held.release();
  writer.join();
  for (const uint64_t k : {1, 2}) {
    EXPECT_EQ(store_.load(typed(k, "KVCache")), "layout");
    EXPECT_FALSE(store_.disk->read_all(store_.path(untyped(k))).has_value());
  }
  EXPECT_EQ(store_.block_bytes(), 0u);
  EXPECT_EQ(stats().writes_cancelled, 2u);
  EXPECT_EQ(sweep(), 0u);
}

TEST_F(CompatibilityTest, ASaveInFlightDuringAChangeIsRefused) {
  proves("RUL-48");
  store_.open();
  store_.save_and_write(typed(1, "KVCache"));
  store_.options.max_size_bytes = store_.cache->tracked_size();
  store_.restart();
  BlockedCalls held = store_.files->plan().block(Op::kUnlink, "");  // The save makes room.
  std::thread saver([this] { EXPECT_EQ(store_.save(typed(2, "KVCache")), "layout"); });
  ASSERT_TRUE(held.wait_until_blocked());
  EXPECT_TRUE(expect({"ArraysCache"}));
  EXPECT_EQ(sweep(), 0u);
  held.release();
  saver.join();
  EXPECT_EQ(store_.block_bytes(), 0u);
  EXPECT_EQ(stats().pending_blocks, 0u);
  EXPECT_EQ(stats().save_rejected_incompatible, 1u);
}

TEST_F(CompatibilityTest, TheFirstTypedSaveAdoptsAndSweepsBeforeItLooksForTheBlock) {
  proves("SAVE-07", "SIG-12");
  put(typed(1, "KVCache"));
  put(typed(2, "RotatingKVCache"));
  store_.open();
  ASSERT_EQ(store_.save(untyped(3)), "queued");
  EXPECT_EQ(store_.cache->expected_layout().layer_types, std::nullopt);
  EXPECT_EQ(store_.save(typed(1, "BufferedRotatingKVCache")), "queued");
  EXPECT_EQ(store_.cache->expected_layout().layer_types, Types{"RotatingKVCache"});
  EXPECT_TRUE(is_swept());
  EXPECT_TRUE(has(typed(2, "")));
  EXPECT_EQ(store_.save(typed(4, "KVCache")), "layout");
}

TEST_F(CompatibilityTest, ARefusedSaveAdoptsNothing) {
  store_.options.num_layers = 1;
  store_.open();
  TestBlock foreign = typed(1, "KVCache");
  foreign.input.model_name = "n";
  EXPECT_EQ(store_.save(foreign), "model");
  TestBlock uneven = typed(2, "KVCache");
  uneven.input.layer_types = {{"KVCache", "KVCache"}};
  EXPECT_EQ(store_.save(uneven), "invalid_argument");
  EXPECT_EQ(store_.cache->expected_layout().layer_types, std::nullopt);
}

TEST_F(CompatibilityTest, ACacheOfNoModelAdoptsNothingFromSaves) {
  store_.options.model_name = "";
  store_.open();
  EXPECT_EQ(store_.save(typed(1, "KVCache")), "queued");
  EXPECT_EQ(store_.save(typed(2, "ArraysCache")), "queued");
  EXPECT_EQ(store_.cache->expected_layout().layer_types, std::nullopt);
  EXPECT_TRUE(store_.cache->adopt_layer_types(Types{"KVCache"}));
  EXPECT_EQ(store_.save(typed(3, "ArraysCache")), "layout");
}

TEST_F(CompatibilityTest, TheExpectationCanBeRead) {
  store_.options.num_layers = 1;
  store_.options.block_size = 64;
  store_.options.layer_types = {{"TurboQuantKVCache"}};
  store_.open();
  EXPECT_TRUE(expect({"TurboQuantKVCache"}, 6));
  const ExpectedLayout expected = store_.cache->expected_layout();
  EXPECT_EQ(expected.model_name, "m");
  EXPECT_EQ(expected.num_layers, 1u);
  EXPECT_EQ(expected.block_size, 64u);
  EXPECT_EQ(expected.layer_types, Types{"TurboQuantKVCache"});
  EXPECT_EQ(expected.turboquant_bits, 6.0);
  ASSERT_TRUE(store_.cache->close({}).ok());
  EXPECT_FALSE(expect({"KVCache"}));
  EXPECT_FALSE(store_.cache->adopt_layer_types(Types{"KVCache"}));
  EXPECT_EQ(sweep(), 0u);
  EXPECT_EQ(store_.cache->expected_layout().turboquant_bits, 6.0);
}

TEST_F(CompatibilityTest, AnExpectedDepthIsDemandedOfSaves) {
  proves("SAVE-28", "DEF-55");
  store_.open();
  EXPECT_TRUE(expect({"TurboQuantKVCache"}, 6));
  EXPECT_EQ(store_.save(typed(1, "TurboQuantKVCache", 4)), "bits");
  EXPECT_EQ(store_.save(typed(2, "TurboQuantKVCache")), "bits");
  EXPECT_EQ(store_.save(typed(3, "TurboQuantKVCache", 6)), "queued");
  EXPECT_EQ(stats().save_rejected_incompatible, 2u);
  EXPECT_TRUE(expect({"KVCache"}, 6));
  EXPECT_EQ(store_.save(typed(4, "KVCache")), "queued");
  store_.executor->run_all();
  EXPECT_EQ(store_.load(typed(4, "KVCache")), "disk");
}

TEST_F(CompatibilityTest, OpenWarnsOfAModelWithoutABlockSize) {
  proves("DEF-56");
  store_.open();
  EXPECT_EQ(store_.logger->count("model_name without block_size"), 1u);
  EXPECT_EQ(store_.logger->count(LogLevel::kWarning), 1u);
  store_.logger->clear();
  store_.options.block_size = 64;
  store_.restart();
  store_.options.model_name = "";
  store_.options.block_size = 0;
  store_.restart();
  EXPECT_EQ(store_.logger->count(LogLevel::kWarning), 0u);
}

TEST_F(CompatibilityTest, OpenWarnsOfAProfileWithoutDigests) {
  proves("RUL-16");
  store_.options.model_name = "";
  store_.open();
  EXPECT_EQ(store_.logger->count(LogLevel::kWarning), 0u);
  store_.options.profile = Profile::kSeedExact;
  store_.restart();
  EXPECT_EQ(store_.logger->count("profile seed-exact"), 1u);
  EXPECT_EQ(store_.logger->count(LogLevel::kWarning), 1u);
  store_.save_and_write(typed(1, "KVCache"));
  EXPECT_EQ(store_.load(typed(1, "KVCache")), "disk");
  EXPECT_EQ(stats().unverified_loads, 1u);
}

TEST_F(CompatibilityTest, AFileOfAnotherIdentityThatTookThePlaceIsAMissByIdentity) {
  proves("RUL-18", "LOAD-16");
  store_.options.identity = {{"adapter", "a1"}};
  store_.open();
  store_.save_and_write(typed(1, "KVCache"));
  TestBlock other = typed(1, "KVCache");
  const std::string mine = *store_.disk->read_all(store_.path(other));
  const size_t at = mine.find("kvkeep_identity\":\"") + 18;
  other.identity = std::string(mine, at, 64);
  (*other.identity)[0] = (*other.identity)[0] == '0' ? '1' : '0';
  std::string theirs = encoded(other);
  ASSERT_EQ(theirs.size(), mine.size());
  store_.disk->write_all(store_.path(other), theirs);
  EXPECT_EQ(store_.load(typed(1, "KVCache")), "identity");
  EXPECT_FALSE(has(other));
  EXPECT_EQ(stats().incompatible_files, 1u);
  store_.restart();
  EXPECT_EQ(store_.load(typed(1, "KVCache")), "identity");
}

TEST(CompatibilityStressTest, WhatIsServedAfterTheLastSweepFits) {
  TestStore store;
  store.options.model_name = "m";
  store.options.queue_wait = std::chrono::hours(1);
  store.options.pending_cap = 4;
  store.open();
  const char* const types[] = {"KVCache", "ArraysCache"};
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    while (!stop) {
      if (!store.executor->run_one()) std::this_thread::yield();
    }
    store.executor->run_all();
  });
  std::vector<std::thread> users;
  for (unsigned t = 0; t < 3; ++t) {
    users.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 300; ++i) {
        const uint64_t k = random() % 16;
        const auto block = typed(k, types[k % 2]);
        switch (random() % 6) {
          case 0:
            store.cache->set_expected_layer_types(Types{types[random() % 2]}, {});
            store.cache->sweep_stale_layouts();
            break;
          case 1:
            store.cache->forget_block(block.hash);
            break;
          case 2:
          case 3:
            static_cast<void>(store.cache->save_block(block.hash, block.input));
            break;
          default:
            EXPECT_EQ(store.load(block).find("WRONG"), std::string::npos);
        }
      }
    });
  }
  for (std::thread& user : users) user.join();
  stop = true;
  writer.join();
  store.cache->set_expected_layer_types(Types{types[0]}, {});
  store.cache->sweep_stale_layouts();
  uint64_t served = 0;
  for (uint64_t k = 0; k < 16; ++k) {
    const auto block = typed(k, types[k % 2]);
    EXPECT_FALSE(k % 2 == 1 && store.cache->has_block(block.hash));
    served += store.load(block) == "disk" ? 1 : 0;
  }
  EXPECT_EQ(served, store.cache->size());
  EXPECT_EQ(store.cache->stats().pending_blocks, 0u);
  EXPECT_EQ(store.cache->stats().errors, 0u);
  store.close();
}

}  // namespace
}  // namespace kvkeep
