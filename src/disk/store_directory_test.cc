#include "disk/store_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "disk/store_layout.h"
#include "testing/mem_file_system.h"
#include "testing/proves.h"
#include "testing/seed_block.h"

namespace kvkeep {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::image_of;
using testing::MemFileSystem;
using testing::seed_bytes;
using testing::seed_key;

constexpr double kNow = 1'800'000'000;
constexpr const char* kNonce = "00000000000000aa";
class StoreDirectoryTest : public ::testing::Test {
 protected:
  static Result<std::unique_ptr<StoreDirectory>> try_open(std::shared_ptr<FileSystem> files,
                                                          StoreDirectory::Settings settings = {}) {
    if (settings.nonce.empty()) settings.nonce = kNonce;
    settings.root_name = "/srv/store";
    return StoreDirectory::open(std::move(files), settings);
  }

  void open(StoreDirectory::Settings settings = {}) {
    store_.reset();
    auto store = try_open(files_, std::move(settings));
    ASSERT_TRUE(store.ok()) << store.status().to_string();
    store_ = *std::move(store);
  }

  Status write(const BlockHash& hash, const std::string& bytes) {
    const auto temp = store_->write_temp(hash, *image_of(hash, bytes));
    return temp.ok() ? store_->commit(*temp, hash).status() : temp.status();
  }

  std::optional<std::string> block() { return files_->read_all(block_path(seed_key())); }

  std::shared_ptr<MemFileSystem> files_ = std::make_shared<MemFileSystem>();
  std::unique_ptr<StoreDirectory> store_;
};

TEST_F(StoreDirectoryTest, OpeningCreatesTheLayout) {
  testing::proves("RUL-66", "RUL-37");
  open();
  for (const char& subdir : kSubdirs) {
    EXPECT_EQ(files_->stat({&subdir, 1})->kind, FileKind::kDirectory);
  }
  EXPECT_THAT(files_->paths(), Contains(owner_path(kNonce)));
}

TEST_F(StoreDirectoryTest, NewStoreHasACacheTag) {
  open();
  const std::string tag = files_->read_all(kCacheTag).value_or("");
  EXPECT_EQ(tag.substr(0, 43), "Signature: 8a477f597d28d172789f06886806bc55");
}

TEST_F(StoreDirectoryTest, RemovedCacheTagStaysAway) {
  open();
  ASSERT_TRUE(files_->unlink(kCacheTag).ok());
  open();
  EXPECT_FALSE(files_->read_all(kCacheTag));
}

TEST_F(StoreDirectoryTest, DirectoryWithOtherThingsKeepsItsBackups) {
  files_->write_all("thesis.tex", "precious");
  open();
  EXPECT_FALSE(files_->read_all(kCacheTag));
}

TEST_F(StoreDirectoryTest, SecondWriterIsRefused) {
  testing::proves("RUL-03");
  open();
  StoreDirectory::Settings settings;
  settings.nonce = "00000000000000bb";
  const auto second = try_open(files_, settings);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), Code::kFailedPrecondition);
  EXPECT_THAT(second.status().message(), HasSubstr("/srv/store is in use by process"));
  store_.reset();
  EXPECT_TRUE(try_open(files_, settings).ok());
}

TEST_F(StoreDirectoryTest, SubdirectoryThatIsALinkRefusesTheStore) {
  testing::proves("RUL-66");
  files_->make_link("a");
  const auto store = try_open(files_);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.status().code(), Code::kFailedPrecondition);
  EXPECT_THAT(store.status().message(), HasSubstr("/srv/store cannot be used as a store"));
}

TEST_F(StoreDirectoryTest, WrittenBlockIsTheImage) {
  open();
  const std::string bytes = seed_bytes();
  const auto temp = store_->write_temp(seed_key(), *image_of(seed_key(), bytes));
  ASSERT_TRUE(temp.ok()) << temp.status().to_string();
  EXPECT_EQ(temp->allocated, bytes.size());
  EXPECT_FALSE(block());
  ASSERT_TRUE(store_->commit(*temp, seed_key()).ok());
  EXPECT_EQ(block(), bytes);
  EXPECT_FALSE(files_->read_all(temp->path));
  EXPECT_EQ(store_->stat(seed_key())->size, bytes.size());
  EXPECT_EQ(store_->read_header(seed_key())->hash, seed_key());
}

TEST_F(StoreDirectoryTest, DiscardedBlockLeavesNothing) {
  open();
  const auto before = files_->paths();
  const auto temp = store_->write_temp(seed_key(), *image_of(seed_key(), seed_bytes()));
  ASSERT_TRUE(temp.ok());
  store_->discard(*temp);
  store_->discard(*temp);
  EXPECT_EQ(files_->paths(), before);
  EXPECT_EQ(store_->leftover_bytes(), 0u);
}

TEST_F(StoreDirectoryTest, TemporaryFileNeverOccupiesMoreThanItsCharge) {
  testing::proves("RUL-01", "RUL-05");
  for (const uint64_t unit : {1, 512, 4096, 65536}) {
    MemFileSystem::Options options;
    options.block_bytes = unit;
    files_ = std::make_shared<MemFileSystem>(options);
    open();
    const std::string bytes = seed_bytes();
    const uint64_t charge = round_up(bytes.size(), store_->block_bytes());
    const uint64_t before = files_->allocated_bytes();
    files_->on_operation([&](const testing::Operation&) {
      EXPECT_LE(files_->allocated_bytes(), before + charge) << unit;
    });
    const auto temp = store_->write_temp(seed_key(), *image_of(seed_key(), bytes));
    ASSERT_TRUE(temp.ok());
    EXPECT_EQ(temp->allocated, charge) << unit;
    files_->on_operation({});
    store_.reset();
  }
}

TEST_F(StoreDirectoryTest, LostSubdirectoryIsCreatedAgain) {
  open();
  files_->remove_tree("3");
  EXPECT_TRUE(write(seed_key(), seed_bytes()).ok());
  EXPECT_TRUE(block());
}

TEST_F(StoreDirectoryTest, NothingIsCreatedWhereTheStoreIsGone) {
  testing::proves("RUL-36");
  open();
  for (const char& subdir : kSubdirs) files_->remove_tree({&subdir, 1});
  files_->remove_tree(kServiceDir);
  files_->remove_tree(kCacheTag);
  const auto temp = store_->write_temp(seed_key(), *image_of(seed_key(), seed_bytes()));
  ASSERT_FALSE(temp.ok());
  EXPECT_EQ(temp.status().code(), Code::kUnavailable);
  EXPECT_THAT(temp.status().message(), HasSubstr("/srv/store is gone"));
  EXPECT_EQ(store_->remove(seed_key()).status().code(), Code::kUnavailable);
  EXPECT_EQ(store_->quarantine(seed_key(), 1).status().code(), Code::kUnavailable);
  store_.reset();
  EXPECT_TRUE(files_->paths().empty());
  EXPECT_EQ(files_->stat("3").status().code(), Code::kNotFound);
}

TEST_F(StoreDirectoryTest, NamesTakenByOtherThingsAreLeftAlone) {
  testing::proves("DEF-69", "RUL-06", "RUL-66");
  open();
  files_->make_link(block_path(seed_key()));
  EXPECT_EQ(write(seed_key(), seed_bytes()).code(), Code::kFailedPrecondition);
  EXPECT_FALSE(*store_->remove(seed_key()));
  EXPECT_EQ(store_->quarantine(seed_key(), 1).status().code(), Code::kNotFound);
  EXPECT_EQ(store_->stat(seed_key()).status().code(), Code::kNotFound);
  EXPECT_FALSE(store_->read_header(seed_key()).ok());
  EXPECT_EQ(files_->stat(block_path(seed_key()))->kind, FileKind::kLink);
}

TEST_F(StoreDirectoryTest, TemporaryNameTakenByAnotherFileIsNotOverwritten) {
  testing::proves("DEF-13", "DEF-69");
  open();
  const std::string first = temp_path(seed_key(), kNonce, 0);
  files_->write_all(first, "not ours");
  EXPECT_EQ(write(seed_key(), seed_bytes()).code(), Code::kUnavailable);
  EXPECT_EQ(files_->read_all(first), "not ours");
  EXPECT_TRUE(write(seed_key(), seed_bytes()).ok());
}

TEST_F(StoreDirectoryTest, RemovingSaysWhetherThereWasAFile) {
  open();
  EXPECT_FALSE(*store_->remove(seed_key()));
  ASSERT_TRUE(write(seed_key(), seed_bytes()).ok());
  EXPECT_TRUE(*store_->remove(seed_key()));
  EXPECT_FALSE(block());
}

TEST_F(StoreDirectoryTest, DamagedBlockGoesToTheQuarantine) {
  testing::proves("RUL-14");
  StoreDirectory::Settings settings;
  settings.quarantine_max_bytes = 1 << 20;
  open(settings);
  const std::string bytes = seed_bytes();
  ASSERT_TRUE(write(seed_key(), bytes).ok());
  const auto report = store_->quarantine(seed_key(), bytes.size());
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->added_bytes, bytes.size());
  EXPECT_FALSE(block());
  EXPECT_EQ(files_->read_all(quarantine_path(seed_key(), 1)), bytes);
  EXPECT_EQ(store_->quarantine(seed_key(), 1).status().code(), Code::kNotFound);
}

TEST_F(StoreDirectoryTest, ScanReportsTheQuarantineThatWasFoundAtOpening) {
  testing::proves("RUL-06");
  files_->write_all(quarantine_path(seed_key(), 1), "damaged");
  StoreDirectory::Settings settings;
  settings.quarantine_max_bytes = 1 << 20;
  open(settings);
  ASSERT_TRUE(write(seed_key(), seed_bytes()).ok());
  ASSERT_TRUE(store_->quarantine(seed_key(), 100).ok());
  const auto report = store_->scan(kNow, [](FoundBlock) {});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->quarantine_bytes, 7u);
}

TEST_F(StoreDirectoryTest, FileOfAnotherBlockIsDamaged) {
  testing::proves("DEF-39", "DEF-70");
  open();
  const BlockHash other = *BlockHash::from_hex("beef");
  ASSERT_TRUE(write(other, seed_bytes()).ok());
  const auto header = store_->read_header(other);
  EXPECT_EQ(header.status().code(), Code::kDataLoss);
  EXPECT_EQ(header.status().miss_reason(), MissReason::kDamaged);
}

TEST_F(StoreDirectoryTest, MtimeOfABlockCanBeSet) {
  open();
  ASSERT_TRUE(write(seed_key(), seed_bytes()).ok());
  ASSERT_TRUE(store_->set_mtime(seed_key(), 1234.5).ok());
  EXPECT_EQ(store_->stat(seed_key())->mtime, 1234.5);
  EXPECT_EQ(store_->set_mtime(*BlockHash::from_hex("ab"), 1).code(), Code::kNotFound);
}

TEST_F(StoreDirectoryTest, DifferentBlocksAreWrittenFromManyThreads) {
  testing::proves("DEF-13");
  open();
  constexpr int kThreads = 4;
  constexpr int kBlocks = 50;
  auto run = [&](int id) {
    for (int i = 0; i < kBlocks; ++i) {
      const std::byte raw[] = {std::byte(i * 5), std::byte(id)};
      const BlockHash hash = *BlockHash::from_bytes(raw);
      EXPECT_TRUE(write(hash, "block " + hash.to_hex()).ok());
      if (i % 3 == 0) {
        EXPECT_TRUE(*store_->remove(hash));
      } else if (i % 3 == 1) {
        EXPECT_TRUE(store_->quarantine(hash, 10).ok());
      }
    }
  };
  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; ++id) threads.emplace_back(run, id);
  for (std::thread& thread : threads) thread.join();
  size_t blocks = 0;
  ASSERT_TRUE(store_->scan(kNow, [&](FoundBlock) { ++blocks; }).ok());
  EXPECT_EQ(blocks, size_t{kThreads * (kBlocks / 3)});
}

}  // namespace
}  // namespace kvkeep
