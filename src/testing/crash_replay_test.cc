#include "testing/crash_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "testing/faulty_file_system.h"
#include "testing/status_matchers.h"

namespace kvkeep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Replaces "block" by a file of `text`, as a store does.
void save(FileSystem& fs, std::string_view text, bool sync) {
  const auto file = fs.create_exclusive("temp");
  ASSERT_THAT(file, is_ok());
  ASSERT_THAT((*file)->append(as_byte_span(text)), is_ok());
  ASSERT_THAT((*file)->append(as_byte_span("padding")), is_ok());
  ASSERT_THAT((*file)->truncate(text.size()), is_ok());
  if (sync) {
    ASSERT_THAT((*file)->sync_data(), is_ok());
  }
  ASSERT_THAT(fs.rename("temp", "block"), is_ok());
}

class CrashReplayTest : public ::testing::Test {
 protected:
  std::vector<Operation> record_save(bool sync) {
    save(*fs_, "abcdef", sync);
    return fs_->changes();
  }
  std::shared_ptr<MemFileSystem> disk_ = std::make_shared<MemFileSystem>();
  std::shared_ptr<FaultyFileSystem> fs_ = std::make_shared<FaultyFileSystem>(disk_);
};

TEST_F(CrashReplayTest, NothingReplayedIsAnEmptyDisk) {
  EXPECT_THAT(replay_changes({}, Unsynced::kKept)->paths(), IsEmpty());
}

TEST_F(CrashReplayTest, EveryPrefixIsWhatTheDiskHeldThen) {
  const std::vector<Operation> changes = record_save(false);
  std::vector<std::string> states;
  for (size_t n = 1; n <= changes.size(); ++n) {
    const auto disk = replay_changes(std::span(changes).first(n), Unsynced::kKept);
    ASSERT_EQ(disk->paths().size(), 1u);
    states.push_back(disk->paths()[0] + " " + *disk->read_all(disk->paths()[0]));
  }
  EXPECT_THAT(states, ElementsAre("temp ", "temp abcdef", "temp abcdefpadding", "temp abcdef",
                                  "block abcdef"));
}

TEST_F(CrashReplayTest, WholeRecordGivesTheSameDisk) {
  disk_->write_all("block", "old");
  const auto before = disk_->clone();
  ASSERT_THAT(fs_->create_dirs("d/e"), is_ok());
  record_save(false);
  ASSERT_THAT(fs_->set_mtime("block", 42), is_ok());
  const auto after = replay_changes(fs_->changes(), Unsynced::kKept, before);
  EXPECT_EQ(after->paths(), disk_->paths());
  EXPECT_EQ(after->read_all("block"), "abcdef");
  EXPECT_EQ(after->stat("block")->mtime, 42);
  EXPECT_EQ(after->stat("d/e")->kind, FileKind::kDirectory);
}

TEST_F(CrashReplayTest, UnsyncedContentsAreLostAsAsked) {
  const std::vector<Operation> changes = record_save(false);
  EXPECT_EQ(replay_changes(changes, Unsynced::kTorn)->read_all("block"), "abc");
  EXPECT_EQ(replay_changes(changes, Unsynced::kZeroed)->read_all("block"), std::string(6, '\0'));
}

TEST_F(CrashReplayTest, SyncedContentsAreKept) {
  const std::vector<Operation> changes = record_save(true);
  EXPECT_EQ(replay_changes(changes, Unsynced::kTorn)->read_all("block"), "abcdef");
  EXPECT_EQ(replay_changes(changes, Unsynced::kZeroed)->read_all("block"), "abcdef");
}

TEST_F(CrashReplayTest, FilesOfBeforeTheRecordAreKept) {
  const auto before = std::make_shared<MemFileSystem>();
  before->write_all("old", "abcdef");
  EXPECT_EQ(replay_changes({}, Unsynced::kTorn, before)->read_all("old"), "abcdef");
}

TEST_F(CrashReplayTest, RemovedAndReplacedFilesAreNotMissed) {
  record_save(false);
  save(*fs_, "second", false);
  EXPECT_EQ(replay_changes(fs_->changes(), Unsynced::kTorn)->read_all("block"), "sec");
  ASSERT_THAT(fs_->unlink("block"), is_ok());
  EXPECT_THAT(replay_changes(fs_->changes(), Unsynced::kTorn)->paths(), IsEmpty());
}

}  // namespace
}  // namespace kvkeep::testing
