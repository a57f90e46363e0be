// Saving and loading, the plain way: what goes in comes out, from memory, from disk, after a
// restart.
#include <gtest/gtest.h>

#include "testing/proves.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using testing::blk;
using testing::proves;
using testing::TestBlock;
using testing::TestStore;

class SaveLoadTest : public ::testing::Test {
 protected:
  SaveLoadTest() { store_.open(); }
  const CacheStats stats() { return store_.cache->stats(); }
  TestStore store_;
};

TEST_F(SaveLoadTest, ABlockIsThereFromTheSaveOn) {
  proves("SAVE-01", "SAVE-12", "PEND-01", "LIFE-01", "HAS-01");
  EXPECT_FALSE(store_.cache->has_block(blk(1).hash));
  EXPECT_EQ(store_.save(blk(1)), "queued");
  EXPECT_TRUE(store_.cache->has_block(blk(1).hash));
  EXPECT_EQ(store_.load(blk(1)), "pending");
  store_.executor->run_all();
  EXPECT_TRUE(store_.cache->has_block(blk(1).hash));
  EXPECT_EQ(store_.load(blk(1)), "disk");
  EXPECT_EQ(stats().saves_persisted, 1u);
}

TEST_F(SaveLoadTest, ASaveMakesNoFileSystemCallWhileThereIsRoom) {
  proves("SAVE-11");
  store_.files->clear_record();
  EXPECT_EQ(store_.save(blk(1)), "queued");
  EXPECT_TRUE(store_.files->calls().empty());
}

TEST_F(SaveLoadTest, EveryKindOfStateReturnsFromMemoryDiskAndRestart) {
  proves("STATE-01", "STATE-02", "STATE-10", "PEND-04", "DEF-45");
  const std::vector<TestBlock> blocks = testing::all_kinds();
  for (const TestBlock& block : blocks) {
    ASSERT_EQ(store_.save(block), "queued") << block.name;
    EXPECT_EQ(store_.load(block), "pending") << block.name;
  }
  store_.executor->run_all();
  for (const TestBlock& block : blocks) EXPECT_EQ(store_.load(block), "disk") << block.name;
  store_.restart();
  for (const TestBlock& block : blocks) EXPECT_EQ(store_.load(block), "disk") << block.name;
}

TEST_F(SaveLoadTest, SavingAPresentBlockRefreshesItAndWritesNothing) {
  proves("SAVE-02", "RUL-29", "LIFE-05", "RUL-31");
  store_.save_and_write(blk(1));
  store_.save_and_write(blk(2));
  store_.clock->advance(std::chrono::seconds(1));
  EXPECT_EQ(store_.save(blk(1)), "present");
  EXPECT_EQ(store_.executor->pending(), 0u);
  EXPECT_EQ(stats().saves, 2u);
  EXPECT_EQ(stats().saves_present, 1u);
  EXPECT_EQ(stats().hits, 1u);
  store_.options.max_size_bytes = store_.file_bytes(blk(1)) + store_.own_bytes;
  store_.restart();
  EXPECT_EQ(store_.load(blk(2)), "evicted");
  EXPECT_EQ(store_.load(blk(1)), "disk");
}

TEST_F(SaveLoadTest, ACallersTensorsMayChangeAfterTheCall) {
  proves("SAVE-14");
  TestBlock block = blk(1);
  auto bytes = std::make_shared<std::vector<std::byte>>(64, std::byte{0x11});
  Tensor tensor{DType::kU8, {64}, {bytes, *bytes}, {}};
  block.input.layers = {make_pair_state(tensor, tensor)};
  ASSERT_EQ(store_.save(block), "queued");
  std::fill(bytes->begin(), bytes->end(), std::byte{0xee});
  for (const char* from : {"pending", "disk"}) {
    const auto loaded = store_.cache->load_block_with_info(block.hash);
    ASSERT_TRUE(loaded.ok());
    EXPECT_EQ(name_of(loaded->source), from);
    const auto& pair = std::get<NState>(loaded->layers[0]);
    EXPECT_EQ(std::get<Tensor>(pair.elements[0].v).data.view[63], std::byte{0x11});
    store_.executor->run_all();
  }
}

TEST_F(SaveLoadTest, LoadedTensorsOutliveTheCache) {
  proves("DEF-77");
  store_.save_and_write(blk(1));
  auto loaded = store_.cache->load_block_with_info(blk(1).hash);
  store_.close();
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(TestStore::outcome(blk(1), loaded), "disk");
  EXPECT_GT(store_.pool->in_use_bytes(), 0u);
  loaded = Status(Code::kInternal, "let go");
  EXPECT_EQ(store_.pool->in_use_bytes(), 0u);
}

TEST_F(SaveLoadTest, NothingStaysInMemoryAfterTheWrite) {
  proves("PEND-03", "WRITER-02");
  store_.save_and_write(blk(1));
  EXPECT_EQ(store_.pool->in_use_bytes(), 0u);
  EXPECT_EQ(stats().pending_blocks, 0u);
}

TEST_F(SaveLoadTest, InfoIsThatOfTheSave) {
  proves("LOAD-10", "PEND-02", "SAVE-08", "SAVE-09", "SAVE-10");
  ASSERT_EQ(store_.save(blk(1)), "queued");
  for (int pass = 0; pass < 2; ++pass) {
    const auto loaded = store_.cache->load_block_with_info(blk(1).hash);
    ASSERT_TRUE(loaded.ok());
    EXPECT_EQ(loaded->info.num_layers, 1u);
    EXPECT_EQ(loaded->info.token_count, 64u);
    EXPECT_EQ(loaded->info.block_size, 64u);
    EXPECT_EQ(loaded->info.model_name, "m");
    EXPECT_EQ(loaded->info.layer_types, std::vector<std::string>{"KVCache"});
    store_.executor->run_all();
  }
}

TEST_F(SaveLoadTest, MetaComesFromTheIndexAndTheFile) {
  proves("LOAD-13", "SAVE-31", "RUL-63");
  EXPECT_FALSE(store_.cache->block_meta(blk(1).hash).has_value());
  ASSERT_EQ(store_.save(blk(2)), "queued");
  EXPECT_EQ(store_.cache->block_meta(blk(2).hash)->last_access, testing::ManualClock::kStartWall);
  store_.save_and_write(blk(1));
  const auto meta = store_.cache->block_meta(blk(1).hash);
  ASSERT_TRUE(meta.has_value());
  EXPECT_EQ(meta->file_size, store_.file_bytes(blk(1)));
  EXPECT_EQ(meta->created_at, testing::ManualClock::kStartWall);
  EXPECT_EQ(meta->info.token_count, 64u);
  EXPECT_EQ(meta->path, "/store/" + store_.path(blk(1)));
  EXPECT_EQ(stats().lookups, 0u);
}

TEST_F(SaveLoadTest, AnUnknownKeyIsAMissWithAReason) {
  proves("LOAD-05", "RUL-32");
  EXPECT_EQ(store_.load(blk(9)), "absent");
  EXPECT_EQ(stats().misses, 1u);
  EXPECT_EQ(stats().missed(MissReason::kAbsent), 1u);
  EXPECT_EQ(stats().lookups, 1u);
}

TEST_F(SaveLoadTest, APrefixStopsAtItsFirstMiss) {
  proves("RUL-17");
  for (const uint64_t k : {1, 2, 4}) store_.save_and_write(blk(k));
  const std::vector<BlockHash> keys{blk(1).hash, blk(2).hash, blk(3).hash, blk(4).hash};
  const BatchResult prefix = store_.cache->load_blocks(keys, BatchMode::kPrefix);
  ASSERT_EQ(prefix.size(), 3u);
  EXPECT_EQ(TestStore::outcome(blk(2), prefix[1]), "disk");
  EXPECT_EQ(TestStore::outcome(blk(3), prefix[2]), "absent");
  EXPECT_EQ(stats().lookups, 3u);
  const BatchResult each = store_.cache->load_blocks(keys, BatchMode::kEach);
  ASSERT_EQ(each.size(), 4u);
  EXPECT_EQ(TestStore::outcome(blk(4), each[3]), "disk");
  EXPECT_TRUE(store_.cache->load_blocks({}, BatchMode::kEach).empty());
}

TEST_F(SaveLoadTest, AFailedBlockEndsThePrefixAndSpoilsNoOther) {
  proves("LOAD-06", "DEF-37");
  for (const uint64_t k : {1, 2, 3}) store_.save_and_write(blk(k));
  store_.disk->remove_tree(store_.path(blk(2)));
  const std::vector<BlockHash> keys{blk(1).hash, blk(2).hash, blk(3).hash};
  const BatchResult prefix = store_.cache->load_blocks(keys, BatchMode::kPrefix);
  ASSERT_EQ(prefix.size(), 2u);
  EXPECT_EQ(TestStore::outcome(blk(1), prefix[0]), "disk");
  EXPECT_EQ(TestStore::outcome(blk(2), prefix[1]), "absent");
  EXPECT_FALSE(store_.cache->has_block(blk(2).hash));
  EXPECT_EQ(stats().errors, 0u);
  EXPECT_EQ(store_.load(blk(3)), "disk");
}

TEST_F(SaveLoadTest, ASaveNoticesThatItsFileHasGone) {
  proves("RUL-39", "DEF-71");
  store_.save_and_write(blk(1));
  store_.disk->remove_tree(store_.path(blk(1)));
  EXPECT_EQ(store_.save(blk(1)), "present");  // Seen within 60 s: taken on trust.
  store_.clock->advance(std::chrono::seconds(61));
  EXPECT_EQ(store_.save(blk(1)), "queued");
  store_.executor->run_all();
  EXPECT_EQ(store_.load(blk(1)), "disk");
}

TEST_F(SaveLoadTest, NoMemoryIsARefusalAndAMissNotACrash) {
  store_.save_and_write(blk(1));
  const auto hog = store_.pool->allocate((1ull << 30) - 1000);
  ASSERT_TRUE(hog.ok());
  EXPECT_EQ(store_.save(blk(2)), "no_memory");
  EXPECT_EQ(store_.load(blk(1)), "no_memory");
  EXPECT_TRUE(store_.cache->has_block(blk(1).hash));
}

TEST_F(SaveLoadTest, OrderOfUseSurvivesARestart) {
  proves("DEF-35", "SCAN-01", "SCAN-07", "RUL-28");
  for (const uint64_t k : {1, 2, 3}) {
    store_.save_and_write(blk(k));
    store_.clock->advance(std::chrono::seconds(1));
  }
  EXPECT_EQ(store_.load(blk(1)), "disk");
  store_.options.max_size_bytes = 2 * store_.file_bytes(blk(1)) + store_.own_bytes;
  store_.restart();
  EXPECT_EQ(store_.load(blk(2)), "evicted");
  EXPECT_EQ(store_.load(blk(1)), "disk");
  EXPECT_EQ(store_.load(blk(3)), "disk");
}

TEST_F(SaveLoadTest, EverythingAnswersAfterClose) {
  proves("CLOSE-01", "CLOSE-07", "DEF-15");
  store_.save_and_write(blk(1));
  TieredCache& cache = *store_.cache;
  ASSERT_TRUE(cache.close(std::nullopt).ok());
  EXPECT_TRUE(cache.close(std::nullopt).ok());
  EXPECT_EQ(store_.save(blk(2)), "closed");
  EXPECT_EQ(store_.load(blk(1)), "closed");
  EXPECT_EQ(cache.delete_block(blk(1).hash).status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(cache.flush(std::nullopt).status().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(cache.has_block(blk(1).hash));
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(store_.executor->pending(), 0u);
}

TEST_F(SaveLoadTest, TheDebugStringSaysWhereAndHowFull) {
  proves("INIT-09");
  store_.save_and_write(blk(1));
  const std::string text = store_.cache->debug_string();
  for (const char* part : {"TieredBlockCache", "/store", "files=1", "1.00TB"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace kvkeep
