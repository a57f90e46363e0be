#include "disk/scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "disk/store_layout.h"
#include "testing/mem_file_system.h"
#include "testing/proves.h"
#include "testing/seed_block.h"

namespace kvkeep {
namespace {

using testing::seed_bytes;

constexpr double kNow = 1'800'000'000;
constexpr const char* kOwnNonce = "00000000000000aa";
constexpr size_t kSeedBlocks = 14;

class ScanTest : public ::testing::Test {
 protected:
  void add_seed_cache() {
    const std::filesystem::path root = std::string(KVKEEP_TEST_DATA) + "/seed-cache";
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      if (!entry.is_regular_file()) continue;
      const std::string path = std::filesystem::relative(entry.path(), root).string();
      files_.write_all(path, testing::read_seed_file(path));
    }
  }

  std::string some_block() { return block_path(testing::seed_key()); }

  ScanReport scan(FileSystem& files, ScanSettings settings = {kOwnNonce, kNow}) {
    found_.clear();
    std::mutex mu;
    const auto report = scan_store(files, settings, [&](FoundBlock block) {
      const std::string hex = block.hash.to_hex();
      std::lock_guard lock(mu);
      EXPECT_TRUE(found_.emplace(hex, std::move(block)).second) << "twice: " << hex;
    });
    EXPECT_TRUE(report.ok()) << report.status().to_string();
    return report.ok() ? *report : ScanReport();
  }
  ScanReport scan() { return scan(files_); }

  // Why the block `hex` has no header.
  MissReason why(const std::string& hex) {
    const auto it = found_.find(hex);
    EXPECT_NE(it, found_.end()) << hex;
    if (it == found_.end()) return MissReason::kAbsent;
    EXPECT_FALSE(it->second.header) << hex;
    return it->second.why;
  }

  testing::MemFileSystem files_;
  std::map<std::string, FoundBlock> found_;
};

TEST_F(ScanTest, EveryBlockOfTheSeedIsFoundWithItsHeader) {
  testing::proves("SCAN-01");
  add_seed_cache();
  files_.write_all("README", "hello");
  const ScanReport report = scan();
  EXPECT_EQ(found_.size(), kSeedBlocks);
  for (const auto& [hex, block] : found_) {
    ASSERT_TRUE(block.header) << hex;
    EXPECT_EQ(block.header->hash, block.hash);
    EXPECT_EQ(block.file_bytes, files_.read_all(block_path(block.hash))->size());
    EXPECT_EQ(block.allocated, block.file_bytes);
    EXPECT_GT(block.mtime, 0);
  }
  EXPECT_EQ(report.unreadable_files, 0u);
}

TEST_F(ScanTest, TensorDataIsNotRead) {
  testing::proves("SCAN-05");
  const std::string file = seed_bytes();
  files_.write_all(some_block(), file);
  uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  for (uint64_t i = 8 + length; i < file.size(); ++i) files_.flip_bit(some_block(), i * 8);
  scan();
  EXPECT_TRUE(found_.begin()->second.header);
}

TEST_F(ScanTest, ModificationTimeIsReported) {
  files_.write_all(some_block(), seed_bytes());
  ASSERT_TRUE(files_.set_mtime(some_block(), 1234.5).ok());
  scan();
  EXPECT_EQ(found_.begin()->second.mtime, 1234.5);
}

TEST_F(ScanTest, UnreadableFilesAreTrackedByNameAndDoNotStopTheScan) {
  testing::proves("SCAN-06", "SCAN-10", "DEF-31");
  const std::string good = seed_bytes();
  files_.write_all("a/a0.safetensors", "");
  files_.write_all("a/a1.safetensors", "1234567");
  files_.write_all("a/a2.safetensors", std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8) + "{}");
  files_.write_all("a/a3.safetensors", good.substr(0, 100));
  files_.write_all("a/a4.safetensors", std::string("\x02\0\0\0\0\0\0\0{}", 10));
  files_.write_all("a/a5.safetensors",
                   std::string("\xc0\x5e\xe6\x05\0\0\0\0", 8) + std::string(500, '{'));
  files_.write_all(some_block(), good);
  const ScanReport report = scan();
  EXPECT_EQ(found_.size(), 7u);
  EXPECT_EQ(report.unreadable_files, 6u);
  for (const char* hex : {"a0", "a1", "a2", "a3", "a4", "a5"}) {
    EXPECT_EQ(why(hex), MissReason::kUnreadable) << hex;
  }
  EXPECT_EQ(found_.at("a3").file_bytes, 100u);
}

TEST_F(ScanTest, RenamedFileIsNotTheBlockOfItsName) {
  testing::proves("DEF-70", "SCAN-10");
  files_.write_all("b/beef.safetensors", seed_bytes());
  scan();
  EXPECT_EQ(why("beef"), MissReason::kDamaged);
}

TEST_F(ScanTest, OtherFormatVersionsAreTrackedWithThatReason) {
  testing::proves("SCAN-04", "SCAN-10");
  std::string file = seed_bytes();
  const std::string version = "\"omlx_cache_format_version\":\"";
  const size_t at = file.find(version);
  ASSERT_NE(at, std::string::npos);
  file[at + version.size()] = '9';
  files_.write_all(some_block(), file);
  const ScanReport report = scan();
  EXPECT_EQ(why(found_.begin()->first), MissReason::kVersion);
  EXPECT_EQ(report.unreadable_files, 1u);
}

TEST_F(ScanTest, ForeignFilesAreCountedAndNeverTouched) {
  testing::proves("RUL-06", "SCAN-10");
  files_.write_all("manifest.json", "12345");
  files_.write_all("README", "123");
  files_.write_all("a/notes.txt", "1");
  files_.write_all("a/b0.safetensors", "22");
  files_.write_all("a/A0.safetensors", "333");
  files_.write_all("other/deep/ab.safetensors", "not looked at");
  files_.write_all("a/ab/ab.safetensors", "not looked at");
  const auto before = files_.clone()->paths();
  const ScanReport report = scan();
  EXPECT_TRUE(found_.empty());
  EXPECT_EQ(report.foreign_files, 7u);
  EXPECT_EQ(report.foreign_bytes, 5u + 3 + 1 + 2 + 3);
  EXPECT_EQ(files_.paths(), before);
}

TEST_F(ScanTest, LinksAndDirectoriesWithBlockNamesAreForeign) {
  testing::proves("RUL-66", "DEF-69");
  files_.make_link("a/ab.safetensors");
  files_.make_link("a/.kvkeep-0123456789abcdef-1.tmp");
  files_.make_link("a/ac_tmp.safetensors");
  ASSERT_TRUE(files_.create_dirs("a/ad.safetensors").ok());
  const ScanReport report = scan();
  EXPECT_TRUE(found_.empty());
  EXPECT_EQ(report.foreign_files, 4u);
  EXPECT_EQ(report.temp_files_removed, 0u);
  EXPECT_EQ(files_.paths().size(), 3u);
}

TEST_F(ScanTest, TemporaryFilesOfEndedProcessesAreRemoved) {
  testing::proves("RUL-03", "SCAN-11", "DEF-12");
  const BlockHash hash = *BlockHash::from_hex("ab");
  const std::string own = temp_path(hash, kOwnNonce, 3);
  files_.write_all(own, "being written");
  files_.write_all(temp_path(hash, "0123456789abcdef", 1), "left");
  files_.write_all(temp_path(hash, "0123456789abcdef", 2), "left");
  const ScanReport report = scan();
  EXPECT_EQ(report.temp_files_removed, 2u);
  EXPECT_THAT(files_.paths(), ::testing::ElementsAre(own));
  EXPECT_EQ(report.overhead_bytes, 0u);
}

TEST_F(ScanTest, TemporaryFilesOfOmlxAreRemovedWhenOld) {
  testing::proves("SCAN-11", "DEF-12");
  files_.write_all("a/ab_tmp.safetensors", "12345");
  files_.write_all("a/ac_tmp.safetensors", "123");
  files_.write_all("a/ad_tmp.safetensors", "1");
  ASSERT_TRUE(files_.set_mtime("a/ab_tmp.safetensors", kNow - 3601).ok());
  ASSERT_TRUE(files_.set_mtime("a/ac_tmp.safetensors", kNow - 3600).ok());
  ASSERT_TRUE(files_.set_mtime("a/ad_tmp.safetensors", kNow + 3601).ok());
  const ScanReport report = scan();
  EXPECT_EQ(report.temp_files_removed, 1u);
  EXPECT_EQ(report.overhead_bytes, 4u);
  EXPECT_TRUE(found_.empty());
  EXPECT_FALSE(files_.read_all("a/ab_tmp.safetensors"));
}

TEST_F(ScanTest, DirectoriesAndServiceFilesAreOverheadInAllocatedBytes) {
  testing::proves("RUL-05", "RUL-06", "RUL-53");
  testing::MemFileSystem::Options options;
  options.block_bytes = 4096;
  options.directory_bytes = 4096;
  testing::MemFileSystem files(options);
  for (const char& subdir : kSubdirs) ASSERT_TRUE(files.create_dirs({&subdir, 1}).ok());
  files.write_all(kOpenLock, "");
  files.write_all(owner_path(kOwnNonce), "pid 1");
  files.write_all(".kvkeep/quarantine/ab-1.safetensors", "damaged");
  files.write_all(".kvkeep/quarantine/notes", "x");
  files.write_all(kCacheTag, "Signature");
  files.write_all("README", "foreign");
  const ScanReport report = scan(files);
  constexpr uint64_t kDirectories = 1 + 16 + 2;
  constexpr uint64_t kFiles = 3;  // Owner, notes, tag; the empty lock file has no block.
  EXPECT_EQ(report.overhead_bytes, (kDirectories + kFiles) * 4096);
  EXPECT_EQ(report.foreign_files, 1u);
  EXPECT_EQ(report.foreign_bytes, 4096u);
  constexpr uint64_t kQuarantined = 4096;
  EXPECT_EQ(report.overhead_bytes + report.foreign_bytes + kQuarantined, files.allocated_bytes());
}

TEST_F(ScanTest, EmptyDirectoryIsAnEmptyStore) {
  const ScanReport report = scan();
  EXPECT_TRUE(found_.empty());
  EXPECT_EQ(report.foreign_files, 0u);
}

// Runs each task on a thread of its own, or never.
class RacingExecutor : public Executor {
 public:
  explicit RacingExecutor(bool runs) : runs_(runs) {}
  ~RacingExecutor() override {
    for (std::thread& thread : threads_) thread.join();
    for (auto& task : kept_) task();  // Late, after the scan.
  }
  void post(std::function<void()> task) override {
    if (runs_) {
      threads_.emplace_back(std::move(task));
    } else {
      kept_.push_back(std::move(task));
    }
  }
  void post_after(Duration, std::function<void()> task) override { post(std::move(task)); }

 private:
  const bool runs_;
  std::vector<std::thread> threads_;
  std::vector<std::function<void()>> kept_;
};

TEST_F(ScanTest, HelpersSeeTheSameStore) {
  testing::proves("SCAN-12");
  add_seed_cache();
  for (int i = 0; i < 20; ++i) files_.write_all("a/a" + std::to_string(i) + ".txt", "foreign");
  const ScanReport alone = scan();
  const size_t blocks = found_.size();
  for (const bool runs : {true, false}) {
    RacingExecutor executor(runs);
    const ScanReport report = scan(files_, {kOwnNonce, kNow, &executor, 8});
    EXPECT_EQ(found_.size(), blocks);
    EXPECT_EQ(report.foreign_files, alone.foreign_files);
    EXPECT_EQ(report.overhead_bytes, alone.overhead_bytes);
  }
}

}  // namespace
}  // namespace kvkeep
