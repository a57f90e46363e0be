// Crashes: the process ends between any two calls, or the power fails, and the store is opened
// again.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "disk/store_directory.h"
#include "disk/store_layout.h"
#include "testing/crash_replay.h"
#include "testing/faulty_file_system.h"
#include "testing/mem_file_system.h"
#include "testing/proves.h"
#include "testing/seed_block.h"

namespace kvkeep {
namespace {

using testing::image_of;
using testing::MemFileSystem;
using testing::seed_bytes;
using testing::seed_key;

constexpr double kNow = 1'800'000'000;
using testing::Unsynced;
using Files = std::shared_ptr<MemFileSystem>;
using Contents = std::map<std::string, std::string>;  // Hex key: bytes.

std::unique_ptr<StoreDirectory> open(const std::shared_ptr<FileSystem>& files, const char* nonce,
                                     Durability durability) {
  StoreDirectory::Settings settings;
  settings.nonce = nonce;
  settings.durability = durability;
  settings.quarantine_max_bytes = 1 << 20;
  auto store = StoreDirectory::open(files, settings);
  EXPECT_TRUE(store.ok()) << store.status().to_string();
  return store.ok() ? *std::move(store) : nullptr;
}

Status write(StoreDirectory& store, const std::string& bytes) {
  const auto temp = store.write_temp(seed_key(), *image_of(seed_key(), bytes));
  return temp.ok() ? store.commit(*temp, seed_key()).status() : temp.status();
}

// What a new process finds: blocks with a header (those without are counted), and no file beside
// them.
Contents reopen(const Files& files, size_t* damaged = nullptr) {
  Contents contents;
  const auto store = open(files, "00000000000000ff", Durability::kNone);
  if (!store) return contents;
  const auto report = store->scan(kNow, [&](FoundBlock block) {
    EXPECT_TRUE(block.header || damaged) << "damaged after a crash";
    if (!block.header && damaged) ++*damaged;
    contents[block.hash.to_hex()] = files->read_all(block_path(block.hash)).value_or("");
  });
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report->foreign_files, 0u);
  for (const std::string& path : files->paths()) {
    const bool service = path == kCacheTag || path.substr(0, kServiceDir.size()) == kServiceDir;
    EXPECT_TRUE(service || contents.count(path.substr(2, path.find('.') - 2)))
        << "untracked: " << path;
  }
  return contents;
}

// The disk as it was after each change that `act` made, oldest first, and before the first.
std::vector<Files> every_state(const Files& files, const std::function<void()>& act) {
  std::vector<Files> states = {files->clone()};
  files->on_operation([&](const testing::Operation&) { states.push_back(files->clone()); });
  act();
  files->on_operation({});
  return states;
}

class StoreCrashTest : public ::testing::TestWithParam<Durability> {
 protected:
  void start(const std::string& old_bytes) {
    files_ = std::make_shared<MemFileSystem>();
    store_ = open(files_, "00000000000000aa", GetParam());
    if (!old_bytes.empty()) {
      ASSERT_TRUE(write(*store_, old_bytes).ok());
    }
  }

  Files files_;
  std::unique_ptr<StoreDirectory> store_;
};

TEST_P(StoreCrashTest, OpeningMayEndAnywhere) {
  const Files files = std::make_shared<MemFileSystem>();
  const std::vector<Files> states =
      every_state(files, [&] { open(files, "00000000000000aa", GetParam()); });
  EXPECT_GT(states.size(), 20u);
  for (const Files& state : states) EXPECT_TRUE(reopen(state).empty());
}

TEST_P(StoreCrashTest, WriteMayEndAnywhere) {
  testing::proves("DEF-10", "DEF-12", "DEF-13");
  start("");
  const std::string bytes = seed_bytes();
  const std::vector<Files> states =
      every_state(files_, [&] { ASSERT_TRUE(write(*store_, bytes).ok()); });
  const Contents whole = {{seed_key().to_hex(), bytes}};
  size_t with_block = 0;
  for (const Files& state : states) {
    const Contents contents = reopen(state);
    EXPECT_TRUE(contents.empty() || contents == whole);
    with_block += contents.size();
  }
  EXPECT_GE(states.size(), 4u);
  EXPECT_GE(with_block, 1u);
  EXPECT_EQ(reopen(states.back()), whole);
}

TEST_P(StoreCrashTest, OverwriteLeavesTheOldOrTheNewBlock) {
  testing::proves("DEF-10", "DEF-14", "ERR-09");
  const std::string older = seed_bytes();
  const std::string newer = testing::with_padding(older, 64);
  start(older);
  const std::vector<Files> states =
      every_state(files_, [&] { ASSERT_TRUE(write(*store_, newer).ok()); });
  const std::string hex = seed_key().to_hex();
  for (const Files& state : states) {
    const Contents contents = reopen(state);
    ASSERT_EQ(contents.size(), 1u);
    EXPECT_TRUE(contents.at(hex) == older || contents.at(hex) == newer);
  }
  EXPECT_EQ(reopen(states.front()).at(hex), older);
  EXPECT_EQ(reopen(states.back()).at(hex), newer);
}

TEST_P(StoreCrashTest, RemovalAndQuarantineMayEndAnywhere) {
  testing::proves("RUL-14");
  const std::string bytes = seed_bytes();
  const Contents whole = {{seed_key().to_hex(), bytes}};
  for (const bool keep : {true, false}) {
    start(bytes);
    const std::vector<Files> states = every_state(files_, [&] {
      if (keep) {
        EXPECT_TRUE(store_->quarantine(seed_key(), bytes.size()).ok());
      } else {
        EXPECT_TRUE(*store_->remove(seed_key()));
      }
    });
    EXPECT_EQ(reopen(states.front()), whole);
    EXPECT_TRUE(reopen(states.back()).empty());
    for (const Files& state : states) {
      const Contents contents = reopen(state);
      EXPECT_TRUE(contents.empty() || contents == whole);
    }
  }
}

TEST_P(StoreCrashTest, PowerMayFailAnywhere) {
  testing::proves("DEF-10", "DEF-12", "RUL-03");
  const std::string older = seed_bytes();
  const std::string newer = testing::with_padding(older, 5000);
  const auto faulty =
      std::make_shared<testing::FaultyFileSystem>(std::make_shared<MemFileSystem>());
  store_ = open(faulty, "00000000000000aa", GetParam());
  ASSERT_TRUE(write(*store_, older).ok());
  ASSERT_TRUE(write(*store_, newer).ok());
  ASSERT_TRUE(store_->quarantine(seed_key(), newer.size()).ok());
  const std::vector<testing::Operation> changes = faulty->changes();
  const std::string hex = seed_key().to_hex();
  for (const Unsynced unsynced : {Unsynced::kKept, Unsynced::kTorn, Unsynced::kZeroed}) {
    size_t damaged = 0;
    for (size_t n = 0; n <= changes.size(); ++n) {
      Contents contents = reopen(replay_changes(std::span(changes).first(n), unsynced), &damaged);
      if (contents.empty() || GetParam() == Durability::kNone) continue;
      EXPECT_TRUE(contents[hex] == older || contents[hex] == newer) << n;
    }
    const bool synced = GetParam() != Durability::kNone || unsynced == Unsynced::kKept;
    if (synced) {
      EXPECT_EQ(damaged, 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryDurability, StoreCrashTest,
                         ::testing::Values(Durability::kNone, Durability::kData,
                                           Durability::kDataAndDir));

}  // namespace
}  // namespace kvkeep
