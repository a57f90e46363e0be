#include "directory/listing.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "directory/store_access.h"
#include "testing/seed_block.h"
#include "testing/status_matchers.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using testing::blk;
using testing::is_ok;

class ListingTest : public ::testing::Test {
 protected:
  ListingTest() {
    store_.options.model_name = "m";
    store_.options.identity = {{"build", "b7"}, {"salt", "secret"}};
    store_.open();
  }
  DirectoryTotals list(FileSystem& files) {
    records_.clear();
    const auto totals = list_blocks(files, "/store", [this](BlockRecord record) {
      const std::string hex = record.meta.hash.to_hex();
      records_.emplace(hex, std::move(record));
    });
    EXPECT_THAT(totals, is_ok());
    return totals.ok() ? *totals : DirectoryTotals();
  }
  DirectoryTotals list() { return list(*store_.disk); }
  const BlockRecord& record(const testing::TestBlock& block) {
    return records_.at(block.hash.to_hex());
  }

  testing::TestStore store_;
  std::map<std::string, BlockRecord> records_;
};

TEST_F(ListingTest, EachBlockIsARecordOfWhatItsFileSays) {
  store_.save_and_write(blk(1));
  const DirectoryTotals totals = list();
  EXPECT_EQ(totals.blocks, 1u);
  const BlockRecord& one = record(blk(1));
  EXPECT_EQ(one.state, BlockState::kOk);
  EXPECT_EQ(one.meta.path, "/store/" + store_.path(blk(1)));
  EXPECT_EQ(one.meta.file_size, store_.file_bytes(blk(1)));
  EXPECT_EQ(one.allocated, one.meta.file_size);  // The disk in memory counts bytes.
  EXPECT_EQ(one.meta.info.token_count, 64u);
  EXPECT_EQ(one.meta.info.model_name, "m");
  EXPECT_EQ(one.meta.info.num_layers, 1u);
  EXPECT_EQ(one.meta.created_at, store_.clock->wall());
  EXPECT_TRUE(one.has_digest);
  EXPECT_EQ(totals.file_bytes, one.meta.file_size);
}

TEST_F(ListingTest, AnIdentityIsKnownByItsFields) {
  store_.save_and_write(blk(1));
  list();
  const BlockRecord& one = record(blk(1));
  ASSERT_NE(one.name_space, nullptr);
  EXPECT_EQ(one.identity, one.name_space->digest);
  EXPECT_EQ(one.name_space->build(), "b7");
  EXPECT_EQ(one.name_space->fields.at("salt"), "salted");
}

TEST_F(ListingTest, WhatCannotBeUsedSaysWhy) {
  for (uint64_t k = 1; k <= 3; ++k) store_.save_and_write(blk(k));
  const std::string seed_path = block_path(testing::seed_key());
  std::string other_version = testing::seed_bytes();
  const std::string mark = "\"omlx_cache_format_version\":\"3\"";
  ASSERT_NE(other_version.find(mark), std::string::npos);
  other_version[other_version.find(mark) + mark.size() - 2] = '9';
  store_.disk->write_all(seed_path, other_version);
  store_.disk->write_all(store_.path(blk(1)), *store_.disk->read_all(store_.path(blk(2))));
  store_.disk->write_all(store_.path(blk(3)), "nonsense");
  EXPECT_EQ(list().blocks, 4u);
  EXPECT_EQ(records_.at(testing::seed_key().to_hex()).state, BlockState::kVersion);
  EXPECT_EQ(record(blk(1)).state, BlockState::kMismatch);
  EXPECT_EQ(record(blk(2)).state, BlockState::kOk);
  EXPECT_EQ(record(blk(3)).state, BlockState::kUnreadable);
}

TEST_F(ListingTest, EverythingElseIsCountedByItsKind) {
  store_.save_and_write(blk(1));
  store_.disk->write_all("README", "12345");
  store_.disk->write_all("a/.kvkeep-0123456789abcdef-7.tmp", "123");
  store_.disk->write_all(quarantine_path(blk(9).hash, 1), "1234567");
  const DirectoryTotals totals = list();
  EXPECT_EQ(totals.foreign_files, 1u);
  EXPECT_EQ(totals.foreign_bytes, 5u);
  EXPECT_EQ(totals.temp_files, 1u);
  EXPECT_EQ(totals.temp_bytes, 3u);
  EXPECT_EQ(totals.quarantine_files, 1u);
  EXPECT_EQ(totals.quarantine_bytes, 7u);
  EXPECT_EQ(totals.store_bytes(), store_.cache->tracked_size() + 3 + 7);
}

TEST_F(ListingTest, NothingIsWrittenAndNothingRemoved) {
  store_.save_and_write(blk(1));
  store_.disk->write_all("a/.kvkeep-0123456789abcdef-7.tmp", "123");
  testing::FaultyFileSystem watched(store_.disk);
  list(watched);
  EXPECT_TRUE(watched.changes().empty());
  EXPECT_EQ(watched.count(testing::Op::kTryLock), 0u);
  EXPECT_TRUE(store_.disk->read_all("a/.kvkeep-0123456789abcdef-7.tmp"));
}

TEST_F(ListingTest, AFileThatVanishesMeanwhileIsNotThere) {
  store_.save_and_write(blk(1));
  store_.save_and_write(blk(2));
  testing::FaultyFileSystem flaky(store_.disk);
  flaky.plan().fail(testing::Op::kStat, store_.path(blk(1)), ENOENT);
  EXPECT_EQ(list(flaky).blocks, 1u);
  flaky.plan().fail(testing::Op::kOpenRead, store_.path(blk(2)), ENOENT);
  EXPECT_EQ(list(flaky).blocks, 1u);
}

TEST_F(ListingTest, DamagedNamespacesOnlyCostTheNames) {
  store_.save_and_write(blk(1));
  store_.disk->write_all(std::string(kNamespacesFile), "{");
  list();
  EXPECT_TRUE(record(blk(1)).identity);
  EXPECT_EQ(record(blk(1)).name_space, nullptr);
}

TEST_F(ListingTest, KeysAreFoundByTheirBeginning) {
  for (uint64_t k = 0; k < 40; ++k) store_.save_and_write(blk(k));
  store_.disk->write_all(block_path(blk(1).hash) + ".note", "");
  const std::string hex = blk(1).hash.to_hex();
  EXPECT_EQ(*find_keys(*store_.disk, hex.substr(0, 8)), std::vector<BlockHash>{blk(1).hash});
  EXPECT_EQ(*find_keys(*store_.disk, hex), std::vector<BlockHash>{blk(1).hash});
  EXPECT_GT(find_keys(*store_.disk, hex.substr(0, 1))->size(), 1u);
  EXPECT_TRUE(find_keys(*store_.disk, hex + "00")->empty());
  EXPECT_TRUE(find_keys(*store_.disk, "xyz")->empty());
}

TEST_F(ListingTest, JsonHasTheKeysOfARecordAndMore) {
  store_.save_and_write(blk(1));
  store_.disk->write_all(store_.path(blk(2)), "nonsense");
  list();
  const auto json = nlohmann::json::parse(to_json(record(blk(1))));
  EXPECT_EQ(json["hash"], blk(1).hash.to_hex());
  EXPECT_EQ(json["model_name"], "m");
  EXPECT_EQ(json["state"], "ok");
  EXPECT_EQ(json["profile"], "extended");
  EXPECT_EQ(json["build"], "b7");
  EXPECT_EQ(json["identity_fields"]["salt"], "salted");
  EXPECT_EQ(json["allocated_size"], store_.file_bytes(blk(1)));
  const auto bad = nlohmann::json::parse(to_json(record(blk(2))));
  EXPECT_EQ(bad["state"], "unreadable");
  EXPECT_FALSE(bad.contains("profile"));
}

TEST(LooksLikeStore, OnlyAStoreDoes) {
  testing::MemFileSystem files;
  EXPECT_FALSE(looks_like_store(files));
  ASSERT_TRUE(files.create_dirs("a").ok());
  files.write_all("a/notes.txt", "");
  EXPECT_FALSE(looks_like_store(files));
  files.write_all("a/abcd.safetensors", "");
  EXPECT_TRUE(looks_like_store(files));

  testing::MemFileSystem marked;
  ASSERT_TRUE(marked.create_dirs(kServiceDir).ok());
  EXPECT_TRUE(looks_like_store(marked));

  testing::MemFileSystem empty;
  for (const char& subdir : kSubdirs) ASSERT_TRUE(empty.create_dirs({&subdir, 1}).ok());
  EXPECT_TRUE(looks_like_store(empty));
}

}  // namespace
}  // namespace kvkeep
