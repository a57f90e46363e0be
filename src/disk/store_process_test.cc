// Real directories and real processes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "disk/store_directory.h"
#include "disk/store_layout.h"
#include "io/posix_file_system.h"
#include "testing/proves.h"
#include "testing/seed_block.h"
#include "testing/status_matchers.h"
#include "testing/temp_dir.h"

namespace kvkeep {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::image_of;
using testing::is_ok;
using testing::seed_bytes;
using testing::seed_key;

constexpr double kNow = 1'800'000'000;

Result<std::unique_ptr<StoreDirectory>> open_store(const fs::path& root) {
  KVKEEP_TRY_ASSIGN(std::shared_ptr<FileSystem> files, open_posix_file_system(root));
  StoreDirectory::Settings settings;
  const std::string pid = std::to_string(getpid());
  settings.nonce = std::string(16 - pid.size(), '0') + pid;
  settings.root_name = root.string();
  settings.quarantine_max_bytes = 1 << 20;
  return StoreDirectory::open(std::move(files), settings);
}

Status write(StoreDirectory& store, const BlockHash& hash, const std::string& bytes) {
  const auto temp = store.write_temp(hash, *image_of(hash, bytes));
  return temp.ok() ? store.commit(*temp, hash).status() : temp.status();
}

BlockHash numbered(uint32_t n) {
  std::byte raw[4];
  store_le(raw, n * 2654435761u);
  return *BlockHash::from_bytes(raw);
}

// A child that runs `work(out)` and then waits to be ended. What it writes to `out` arrives at
// read().
class Child {
 public:
  explicit Child(const std::function<void(int out)>& work) {
    int pipe_ends[2];
    EXPECT_EQ(pipe(pipe_ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(pipe_ends[0]);
      work(pipe_ends[1]);
      for (;;) pause();
    }
    close(pipe_ends[1]);
    in_ = pipe_ends[0];
  }
  ~Child() {
    end();
    close(in_);
  }

  pid_t pid() const { return pid_; }
  // The next byte, or 0 when there will be none.
  char read() {
    char c = 0;
    return ::read(in_, &c, 1) == 1 ? c : '\0';
  }
  void end() {
    if (pid_ < 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  int in_ = -1;
};

void tell(int out, char c) { EXPECT_EQ(::write(out, &c, 1), 1); }

class StoreProcessTest : public ::testing::Test {
 protected:
  fs::path root() const { return dir_.path() / "store"; }

  std::map<std::string, FoundBlock> scan(StoreDirectory& store) {
    std::map<std::string, FoundBlock> found;
    const auto report = store.scan(kNow, [&](FoundBlock b) { found.emplace(b.hash.to_hex(), b); });
    EXPECT_THAT(report, is_ok());
    if (report.ok()) report_ = *report;
    return found;
  }

  testing::TempDir dir_;
  ScanReport report_;
};

TEST_F(StoreProcessTest, LivingProcessKeepsOthersOut) {
  testing::proves("RUL-03", "RUL-46");
  Child child([&](int out) {
    const auto store = open_store(root());
    tell(out, store.ok() ? 'y' : 'n');
    pause();
  });
  ASSERT_EQ(child.read(), 'y');
  const auto refused = open_store(root());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kFailedPrecondition);
  EXPECT_THAT(refused.status().message(),
              HasSubstr(root().string() + " is in use by process " + std::to_string(child.pid())));
  child.end();
  EXPECT_THAT(open_store(root()), is_ok());
}

TEST_F(StoreProcessTest, OfManyOpenersAtMostOneOwnsTheStore) {
  testing::proves("RUL-03");
  for (int round = 0; round < 10; ++round) {
    std::vector<std::unique_ptr<Child>> children;
    for (int i = 0; i < 4; ++i) {
      children.push_back(std::make_unique<Child>([&](int out) {
        const auto store = open_store(root());
        tell(out, store.ok() ? 'y' : 'n');
        pause();
      }));
    }
    int owners = 0;
    for (const auto& child : children) owners += child->read() == 'y' ? 1 : 0;
    EXPECT_LE(owners, 1);
    children.clear();
    EXPECT_THAT(open_store(root()), is_ok());
  }
}

TEST_F(StoreProcessTest, KilledWriterLeavesWholeBlocksAndNothingElse) {
  testing::proves("DEF-10", "DEF-12", "RUL-03");
  const std::string bytes = seed_bytes();
  constexpr int kRounds = 10;
  uint32_t next = 0;
  for (int round = 0; round < kRounds; ++round) {
    const uint32_t first = next;
    Child child([&](int out) {
      const auto store = open_store(root());
      for (uint32_t n = first; store.ok(); ++n) {
        if (!write(**store, numbered(n), bytes).ok()) break;
        tell(out, 'w');
      }
      tell(out, '!');
    });
    for (int written = 0; written < 20 + round; ++written) {
      ASSERT_EQ(child.read(), 'w');
      ++next;
    }
    child.end();
    const auto store = open_store(root());
    ASSERT_THAT(store, is_ok());
    const auto found = scan(**store);
    EXPECT_GE(found.size(), next);
    for (uint32_t n = 0; n < next; ++n) EXPECT_TRUE(found.count(numbered(n).to_hex()));
    for (const auto& [hex, block] : found) EXPECT_EQ(block.file_bytes, bytes.size());
    EXPECT_EQ(report_.foreign_files, 0u);
    for (const auto& entry : fs::recursive_directory_iterator(root())) {
      EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
    }
    next = static_cast<uint32_t>(found.size());
  }
}

TEST_F(StoreProcessTest, CacheOfTheSeedOpensAsItIs) {
  testing::proves("SCAN-01", "RUL-06");
  fs::copy(fs::path(KVKEEP_TEST_DATA) / "seed-cache", root(), fs::copy_options::recursive);
  const auto store = open_store(root());
  ASSERT_THAT(store, is_ok());
  const auto found = scan(**store);
  EXPECT_EQ(found.size(), 14u);
  for (const auto& [hex, block] : found) {
    EXPECT_TRUE(block.header) << hex;
    EXPECT_GE(block.allocated, block.file_bytes) << hex;
  }
  EXPECT_EQ(report_.foreign_files, 1u);  // manifest.json
  EXPECT_EQ(report_.unreadable_files, 0u);
}

TEST_F(StoreProcessTest, WhatTheSystemReportsIsWhatTheBlockWillOccupy) {
  testing::proves("RUL-05", "RUL-53");
  const auto store = open_store(root());
  ASSERT_THAT(store, is_ok());
  const uint64_t unit = (*store)->block_bytes();
  for (const size_t size : {1u, 4095u, 4096u, 4097u, 1'000'000u}) {
    const std::string bytes(size, 'x');
    const auto temp = (*store)->write_temp(seed_key(), *image_of(seed_key(), bytes));
    ASSERT_THAT(temp, is_ok());
    EXPECT_LE(temp->allocated, round_up(size, unit)) << size;
    ASSERT_THAT((*store)->commit(*temp, seed_key()), is_ok());
    const auto stat = (*store)->stat(seed_key());
    ASSERT_THAT(stat, is_ok());
    EXPECT_EQ(stat->size, size);
    EXPECT_EQ(stat->allocated, temp->allocated);
  }
}

TEST_F(StoreProcessTest, LinksAndPipesNamedLikeBlocksAreNeverFollowed) {
  testing::proves("RUL-66", "DEF-69");
  const auto store = open_store(root());
  ASSERT_THAT(store, is_ok());
  const fs::path outside = dir_.path() / "outside";
  std::ofstream(outside) << "precious";
  fs::create_symlink(outside, root() / block_path(seed_key()));
  fs::create_symlink(outside, root() / "a/.kvkeep-0123456789abcdef-1.tmp");
  fs::create_directory(root() / "b/be.safetensors");
  ASSERT_EQ(mkfifo((root() / "c/ce.safetensors").c_str(), 0600), 0);
  EXPECT_TRUE(scan(**store).empty());
  EXPECT_EQ(report_.foreign_files, 4u);
  EXPECT_EQ(write(**store, seed_key(), seed_bytes()).code(), Code::kFailedPrecondition);
  EXPECT_FALSE(*(*store)->remove(seed_key()));
  std::string text;
  std::ifstream(outside) >> text;
  EXPECT_EQ(text, "precious");
  EXPECT_TRUE(fs::is_symlink(root() / block_path(seed_key())));
}

TEST_F(StoreProcessTest, UnreadableFileDoesNotStopTheScan) {
  testing::proves("SCAN-06", "SCAN-10");
  const auto store = open_store(root());
  ASSERT_THAT(store, is_ok());
  ASSERT_THAT(write(**store, seed_key(), seed_bytes()), is_ok());
  ASSERT_THAT(write(**store, numbered(1), seed_bytes()), is_ok());
  fs::permissions(root() / block_path(numbered(1)), fs::perms::none);
  const auto found = scan(**store);
  EXPECT_EQ(found.size(), 2u);
  EXPECT_TRUE(found.at(seed_key().to_hex()).header);
  EXPECT_FALSE(found.at(numbered(1).to_hex()).header);
}

TEST_F(StoreProcessTest, RemovedRootIsNotBroughtBack) {
  testing::proves("RUL-36");
  const auto store = open_store(root());
  ASSERT_THAT(store, is_ok());
  fs::rename(root(), dir_.path() / "away");
  fs::create_directory(root());
  const Status status = write(**store, seed_key(), seed_bytes());
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("is gone"));
  EXPECT_TRUE(fs::is_empty(root()));
}

TEST_F(StoreProcessTest, DirectoryThatMayNotBeWrittenRefusesTheStore) {
  testing::proves("INIT-07");
  if (geteuid() == 0) GTEST_SKIP() << "the superuser may write everywhere";
  fs::create_directory(root());
  fs::permissions(root(), fs::perms::owner_read | fs::perms::owner_exec);
  const auto store = open_store(root());
  EXPECT_EQ(store.status().code(), Code::kFailedPrecondition);
  fs::permissions(root(), fs::perms::owner_all);
}

}  // namespace
}  // namespace kvkeep
