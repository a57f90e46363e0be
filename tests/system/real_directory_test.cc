// A store on a real file system: what it takes there, how it is protected, what it refuses to be.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/bytes.h"
#include "disk/store_layout.h"
#include "io/posix_file_system.h"
#include "testing/block_builder.h"
#include "testing/block_compare.h"
#include "testing/exact_buffer_pool.h"
#include "testing/faulty_file_system.h"
#include "testing/manual_executor.h"
#include "testing/proves.h"
#include "testing/recording_logger.h"
#include "testing/temp_dir.h"
#include "tier/tiered_cache.h"

namespace kvkeep {
namespace {

namespace fs = std::filesystem;

// Allocated bytes of everything, without any help of kvkeep's.
uint64_t disk_usage(const fs::path& root) {
  struct stat st {};
  EXPECT_EQ(::lstat(root.c_str(), &st), 0);
  uint64_t bytes = static_cast<uint64_t>(st.st_blocks) * 512;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (::lstat(entry.path().c_str(), &st) == 0) bytes += static_cast<uint64_t>(st.st_blocks) * 512;
  }
  return bytes;
}

// Looks at the directory around every call that adds or removes bytes.
class WatchedFileSystem final : public testing::FaultyFileSystem {
 public:
  WatchedFileSystem(std::shared_ptr<FileSystem> inner, fs::path root, uint64_t limit)
      : FaultyFileSystem(std::move(inner)), root_(std::move(root)), limit_(limit) {}

  Result<std::unique_ptr<WriteFile>> create_exclusive(std::string_view path) override {
    look();
    return FaultyFileSystem::create_exclusive(path);
  }
  // The temporary file is at its largest here.
  Status rename(std::string_view from, std::string_view to) override {
    look();
    const Status status = FaultyFileSystem::rename(from, to);
    look();
    return status;
  }
  Status unlink(std::string_view path) override {
    const Status status = FaultyFileSystem::unlink(path);
    look();
    return status;
  }
  uint64_t most() const { return most_; }

 private:
  void look() {
    const uint64_t used = disk_usage(root_);
    most_ = std::max(most_, used);
    EXPECT_LE(used, limit_);
  }
  const fs::path root_;
  const uint64_t limit_;
  uint64_t most_ = 0;
};

Options options_for(const fs::path& dir, uint64_t limit = 1ull << 30) {
  Options options;
  options.cache_dir = dir;
  options.max_size_bytes = limit;
  return options;
}

TEST(RealDirectory, TheLimitHoldsUnderAWriterThatSavesEightTimesAsMuch) {
  testing::proves("RUL-01", "RUL-05", "RUL-53", "INIT-01");
  const testing::TempDir temp;
  const uint64_t limit = 8ull << 20;
  const fs::path root = temp.path() / "store";
  auto files = open_posix_file_system(root);
  ASSERT_TRUE(files.ok());
  auto watched = std::make_shared<WatchedFileSystem>(*files, root, limit);
  const auto executor = std::make_shared<testing::ManualExecutor>(system_clock());
  StoreSeams seams{watched, make_pread_engine(watched),
                   testing::ExactBufferPool::create(1ull << 30), "0123456789abcdef"};
  const auto logger = std::make_shared<testing::RecordingLogger>();
  auto cache = TieredCache::open(options_for(root, limit), {nullptr, executor, nullptr, logger},
                                 std::move(seams));
  ASSERT_TRUE(cache.ok()) << cache.status().to_string();
  const uint64_t blocks = 8 * limit / (64 << 10);
  for (uint64_t k = 0; k < blocks; ++k) {
    const auto block = testing::blk(k);
    ASSERT_TRUE((*cache)->save_block(block.hash, block.input).ok());
    executor->run(k % 3);
  }
  executor->run_all();
  EXPECT_GE(disk_usage(root), limit * 8 / 10);
  uint64_t right = 0;
  for (uint64_t k = 0; k < blocks; ++k) {
    const auto loaded = (*cache)->load_block_with_info(testing::blk(k).hash);
    if (!loaded.ok()) continue;
    ++right;
    EXPECT_EQ(testing::difference(testing::blk(k).input, *loaded), "");
  }
  EXPECT_EQ(right, (*cache)->size());
  EXPECT_GE(right * (64 << 10), limit * 8 / 10);
  EXPECT_TRUE((*cache)->close(std::nullopt).ok());
  RecordProperty("most_bytes_seen", std::to_string(watched->most()));
}

TEST(RealDirectory, IsPrivate) {
  testing::proves("DEF-69");
  const testing::TempDir temp;
  const fs::path root = temp.path() / "a" / "store";
  const ::mode_t old = ::umask(0);
  {
    auto cache = TieredBlockCache::open(options_for(root));
    ASSERT_TRUE(cache.ok()) << cache.status().to_string();
    ASSERT_TRUE((*cache)->save_block(testing::blk(1).hash, testing::blk(1).input).ok());
    ASSERT_TRUE((*cache)->flush().ok());
  }
  ::umask(old);
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const auto open_to = entry.status().permissions() & fs::perms::mask;
    EXPECT_EQ(open_to, entry.is_directory() ? fs::perms::owner_all
                                            : fs::perms::owner_read | fs::perms::owner_write)
        << entry.path();
  }
  EXPECT_EQ(fs::status(root).permissions() & fs::perms::mask, fs::perms::owner_all);
}

TEST(RealDirectory, CannotBeAFile) {
  testing::proves("INIT-07");
  const testing::TempDir temp;
  const fs::path path = temp.path() / "file";
  std::ofstream(path) << "x";
  const auto cache = TieredBlockCache::open(options_for(path));
  ASSERT_FALSE(cache.ok());
  EXPECT_EQ(cache.status().code(), Code::kFailedPrecondition);
  EXPECT_NE(cache.status().message().find(path.string()), std::string::npos)
      << cache.status().message();
}

TEST(RealDirectory, BelongsToOneCacheAtATime) {
  testing::proves("RUL-03");
  const testing::TempDir temp;
  auto first = TieredBlockCache::open(options_for(temp.path()));
  ASSERT_TRUE(first.ok());
  const auto second = TieredBlockCache::open(options_for(temp.path()));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), Code::kFailedPrecondition);
  EXPECT_NE(second.status().message().find(std::to_string(::getpid())), std::string::npos);
  ASSERT_TRUE((*first)->close().ok());
  EXPECT_TRUE(TieredBlockCache::open(options_for(temp.path())).ok());
}

}  // namespace
}  // namespace kvkeep
