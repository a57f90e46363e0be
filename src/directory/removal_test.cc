// gc, rm and quarantine on real directories, through the public functions.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/bytes.h"
#include "directory/removal.h"
#include "directory/store_access.h"
#include "disk/store_layout.h"
#include "io/posix_file_system.h"
#include "kvkeep/directory.h"
#include "testing/block_builder.h"
#include "testing/status_matchers.h"
#include "testing/temp_dir.h"
#include "testing/test_images.h"

namespace kvkeep {
namespace {

namespace fs = std::filesystem;
using testing::blk;
using testing::is_ok;
using testing::key_of;

// Blocks are written as a cache would, without one.
class RemovalTest : public ::testing::Test {
 protected:
  RemovalTest() {
    EXPECT_TRUE(StoreDirectory::open(*open_posix_file_system(root()), settings()).ok());
  }
  fs::path root() const { return dir_.path() / "store"; }
  static StoreDirectory::Settings settings() {
    StoreDirectory::Settings settings;
    settings.nonce = "0123456789abcdef";
    settings.root_name = "the store";
    return settings;
  }
  void write(uint64_t k, double used, std::optional<uint64_t> parent = {},
             const std::string& model = "m") {
    auto store = StoreDirectory::open(*open_posix_file_system(root()), settings());
    ASSERT_THAT(store, is_ok());
    testing::TestBlock block = blk(k);
    block.input.model_name = model;
    if (parent) block.input.parent = key_of(*parent);
    BufferPool::Options pool;
    pool.limit_bytes = 64 << 20;
    EncodeContext context = testing::test_context(Profile::kExtended, block);
    context.created_at = used;
    const auto image = encode_block(block.hash, block.input, context, *BufferPool::create(pool));
    ASSERT_THAT(image, is_ok());
    const auto temp = (*store)->write_temp(block.hash, **image);
    ASSERT_THAT(temp, is_ok());
    ASSERT_THAT((*store)->commit(*temp, block.hash), is_ok());
    ASSERT_THAT((*store)->set_mtime(block.hash, used), is_ok());
  }
  std::set<uint64_t> left() const {
    std::set<uint64_t> numbers;
    for (uint64_t k = 0; k < 20; ++k) {
      if (fs::exists(root() / block_path(key_of(k)))) numbers.insert(k);
    }
    return numbers;
  }
  DirectoryTotals totals() const {
    const auto all = list_blocks(root(), [](const BlockRecord&) {});
    EXPECT_THAT(all, is_ok());
    return *all;
  }
  RemovalStock stock() const {
    const auto files = open_store_to_read(root());
    return *take_removal_stock(**files, root(), Leftovers::kKeep);
  }
  const testing::TempDir dir_;
};

TEST_F(RemovalTest, GcBringsTheStoreUnderASizeLeastRecentlyUsedFirst) {
  for (uint64_t k = 0; k < 6; ++k) write(k, 1000.0 + static_cast<double>(k));
  GcOptions options;
  options.max_size = totals().store_bytes() - totals().block_bytes / 2;
  const auto report = collect_garbage(root(), options);
  ASSERT_THAT(report, is_ok());
  EXPECT_EQ(left(), (std::set<uint64_t>{3, 4, 5}));
  EXPECT_EQ(report->blocks, 3u);
  EXPECT_EQ(report->failed, 0u);
  EXPECT_LE(totals().store_bytes(), *options.max_size);
  EXPECT_EQ(report->bytes_left, totals().store_bytes());
}

TEST_F(RemovalTest, GcTakesWhatEndedProcessesLeftBeforeAnyBlock) {
  write(1, 1000);
  GcOptions options;
  options.max_size = totals().store_bytes();
  const fs::path left_behind = root() / "a" / ".kvkeep-00000000000000aa-1.tmp";
  std::ofstream(left_behind) << std::string(100'000, 'x');
  ASSERT_THAT(collect_garbage(root(), options), is_ok());
  EXPECT_FALSE(fs::exists(left_behind));
  EXPECT_EQ(left(), std::set<uint64_t>{1});
}

TEST_F(RemovalTest, GcKeepsTheParentOfABlockThatStays) {
  write(1, 1000);
  write(2, 5000, 1);
  write(3, 2000);
  GcOptions options;
  options.max_size = totals().store_bytes() - 1;
  ASSERT_THAT(collect_garbage(root(), options), is_ok());
  EXPECT_EQ(left(), (std::set<uint64_t>{1, 2}));
}

TEST_F(RemovalTest, GcByAgeAndModelTakesOnlyThose) {
  write(1, 1000);
  write(2, 1000, {}, "other");
  write(3, 9000);
  const RemovalPlan plan = plan_gc(stock(), {{}, 5000.0, "m"}, 10000);
  EXPECT_EQ(plan.blocks, std::vector<BlockHash>{key_of(1)});
}

TEST_F(RemovalTest, GcWithoutABoundIsRefused) {
  EXPECT_EQ(collect_garbage(root(), {}).status().code(), Code::kInvalidArgument);
}

TEST_F(RemovalTest, ADryRunForetellsAndTouchesNothing) {
  for (uint64_t k = 0; k < 4; ++k) write(k, 1000);
  GcOptions options;
  options.max_size = 0;
  options.dry_run = true;
  const auto foretold = collect_garbage(root(), options);
  ASSERT_THAT(foretold, is_ok());
  EXPECT_EQ(foretold->blocks, 4u);
  EXPECT_EQ(foretold->bytes, totals().block_bytes);
  EXPECT_EQ(left().size(), 4u);
  RemoveOptions remove;
  remove.all = true;
  remove.dry_run = true;
  EXPECT_EQ(remove_blocks(root(), remove)->blocks, 4u);
  EXPECT_EQ(left().size(), 4u);
}

TEST_F(RemovalTest, RemovingABlockTakesItsDescendants) {
  write(1, 1000);
  write(2, 1000, 1);
  write(3, 1000, 2);
  write(4, 1000, 1);
  const uint64_t before = totals().block_bytes;
  RemoveOptions options;
  options.keys = {key_of(2)};
  const auto report = remove_blocks(root(), options);
  ASSERT_THAT(report, is_ok());
  EXPECT_EQ(report->blocks, 2u);
  EXPECT_EQ(left(), (std::set<uint64_t>{1, 4}));
  EXPECT_EQ(report->bytes, before - totals().block_bytes);
}

TEST_F(RemovalTest, FiltersHaveToHoldTogether) {
  write(1, 1000);
  write(2, 9000);
  write(3, 9000, {}, "other");
  RemoveOptions options;
  options.model_name = "m";
  options.newer_than_seconds = 2000;
  EXPECT_EQ(plan_removal(stock(), options, 10000).blocks, std::vector<BlockHash>{key_of(2)});
  EXPECT_EQ(remove_blocks(root(), {}).status().code(), Code::kInvalidArgument);
}

TEST_F(RemovalTest, AllTakesWhatCannotBeReadToo) {
  write(1, 1000);
  std::ofstream(root() / block_path(key_of(2))) << "nonsense";
  RemoveOptions options;
  options.all = true;
  EXPECT_EQ(remove_blocks(root(), options)->blocks, 2u);
  EXPECT_TRUE(left().empty());
}

TEST_F(RemovalTest, AStoreInUseIsLeftAloneAndItsOwnerNamed) {
  write(1, 1000);
  const auto owner = StoreDirectory::open(*open_posix_file_system(root()), settings());
  ASSERT_THAT(owner, is_ok());
  RemoveOptions options;
  options.all = true;
  GcOptions gc;
  gc.max_size = 0;
  for (const Status& status :
       {remove_blocks(root(), options).status(), collect_garbage(root(), gc).status(),
        quarantine_damaged(root(), {}).status()}) {
    EXPECT_EQ(status.code(), Code::kFailedPrecondition);
    EXPECT_NE(status.message().find("process " + std::to_string(::getpid())), std::string::npos)
        << status.message();
  }
  EXPECT_EQ(left(), std::set<uint64_t>{1});
  EXPECT_EQ(totals().blocks, 1u) << "reading works all the same";
}

TEST_F(RemovalTest, ADirectoryThatIsNoStoreIsNeverMadeOne) {
  const fs::path other = dir_.path() / "other";
  fs::create_directories(other / "a");
  RemoveOptions options;
  options.all = true;
  EXPECT_EQ(remove_blocks(other, options).status().code(), Code::kNotFound);
  EXPECT_EQ(list_blocks(other, [](const BlockRecord&) {}).status().code(), Code::kNotFound);
  EXPECT_EQ(std::distance(fs::directory_iterator(other), {}), 1);
  EXPECT_EQ(remove_blocks(dir_.path() / "none", options).status().code(), Code::kNotFound);
  EXPECT_FALSE(fs::exists(dir_.path() / "none"));
}

TEST_F(RemovalTest, OnlyWhatIsStillDamagedGoesToTheQuarantine) {
  write(1, 1000);
  write(2, 1000);
  {
    std::fstream file(root() / block_path(key_of(2)), std::ios::in | std::ios::out);
    file.seekp(-1, std::ios::end);
    file.put('!');
  }
  const std::vector<BlockHash> keys{key_of(1), key_of(2), key_of(3)};
  const auto report = quarantine_damaged(root(), keys);
  ASSERT_THAT(report, is_ok());
  EXPECT_EQ(report->blocks, 1u);
  EXPECT_EQ(left(), std::set<uint64_t>{1});
  EXPECT_EQ(totals().quarantine_files, 1u);
  EXPECT_TRUE(fs::exists(root() / quarantine_path(key_of(2), 1)));
  const auto aside = inspect_file(root() / quarantine_path(key_of(2), 1));
  ASSERT_THAT(aside, is_ok());
  EXPECT_EQ(aside->digest, DigestState::kWrong);
}

}  // namespace
}  // namespace kvkeep
