// Where slot files lie: mapped files, scratch directories, the slot directory, and sizes of stores.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "daemon/slots/mapped_file.h"
#include "daemon/slots/scratch_directory.h"
#include "daemon/slots/slot_directory.h"
#include "daemon/store_size.h"
#include "testing/temp_dir.h"

namespace kvkeep::daemon {
namespace {

using std::filesystem::path;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Directories : public ::testing::Test {
 protected:
  path at(const std::string& name) const { return dir_.path() / name; }
  static mode_t mode_of(const path& file) {
    struct stat info {};
    EXPECT_EQ(::lstat(file.c_str(), &info), 0) << file;
    return info.st_mode & 07777;
  }
  testing::TempDir dir_;
};

using Mapped = Directories;

TEST_F(Mapped, WhatIsWrittenIsInTheFile) {
  {
    const auto file = MappedFile::create(at("f"), 100);
    ASSERT_TRUE(file.ok()) << file.status().to_string();
    ASSERT_EQ((*file)->bytes().size(), 100u);
    (*file)->bytes()[99] = std::byte{7};
  }
  EXPECT_EQ(mode_of(at("f")), 0600u);
  const auto again = MappedFile::open(at("f"));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ((*again)->bytes()[99], std::byte{7});
}

TEST_F(Mapped, OutlivesTheNameOfItsFile) {
  std::ofstream(at("f")) << "content";
  const auto file = MappedFile::open(at("f"));
  ASSERT_TRUE(file.ok());
  std::filesystem::remove(at("f"));
  EXPECT_EQ((*file)->bytes()[0], std::byte{'c'});
}

TEST_F(Mapped, AnEmptyFileHasNoBytes) {
  std::ofstream(at("f")).close();
  const auto file = MappedFile::open(at("f"));
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE((*file)->bytes().empty());
}

TEST_F(Mapped, ReplacesNothingAndFollowsNoLink) {
  std::ofstream(at("f")) << "content";
  std::filesystem::create_symlink(at("f"), at("link"));
  std::filesystem::create_symlink(at("nowhere"), at("dangling"));
  EXPECT_EQ(MappedFile::create(at("f"), 10).status().code(), Code::kUnavailable);
  EXPECT_FALSE(MappedFile::create(at("dangling"), 10).ok());
  EXPECT_FALSE(MappedFile::open(at("link")).ok());
  EXPECT_THAT(MappedFile::open(at("none")).status().message(), HasSubstr(at("none").string()));
  const std::vector<std::byte> bytes(3);
  EXPECT_FALSE(write_new_file(at("f"), bytes).ok());
  EXPECT_FALSE(write_new_file(at("dangling"), bytes).ok());
  EXPECT_FALSE(std::filesystem::exists(at("nowhere")));
}

TEST_F(Mapped, AFileThatFindsNoRoomIsNotLeftBehind) {
  const auto file = MappedFile::create(at("f"), uint64_t{1} << 60);
  EXPECT_FALSE(file.ok());
  EXPECT_FALSE(std::filesystem::exists(at("f")));
}

using Scratch = Directories;

TEST_F(Scratch, IsPrivateAndGoneAtTheEnd) {
  path made;
  {
    const auto scratch = ScratchDirectory::create(dir_.path(), "x-");
    ASSERT_TRUE(scratch.ok());
    made = (*scratch)->path();
    EXPECT_THAT(made.filename().string(), StartsWith("x-"));
    EXPECT_EQ(mode_of(made), 0700u);
    std::filesystem::create_directories(made / "a/b");
  }
  EXPECT_FALSE(std::filesystem::exists(made));
}

TEST_F(Scratch, RemovesWhatDeadProcessesLeft) {
  std::filesystem::create_directory(at("x-dead"));
  std::ofstream(at("x-dead") / "f") << "content";
  std::filesystem::create_directory(at("other"));
  std::ofstream(at("x-file")) << "no directory";
  std::filesystem::create_symlink(at("other"), at("x-link"));
  const auto scratch = ScratchDirectory::create(dir_.path(), "x-");
  ASSERT_TRUE(scratch.ok());
  EXPECT_FALSE(std::filesystem::exists(at("x-dead")));
  EXPECT_TRUE(std::filesystem::exists(at("other")));
  EXPECT_TRUE(std::filesystem::exists(at("x-file")));
  EXPECT_TRUE(std::filesystem::is_symlink(at("x-link")));
}

TEST_F(Scratch, LeavesThoseOfLivingProcesses) {
  const auto first = ScratchDirectory::create(dir_.path(), "x-");
  const auto second = ScratchDirectory::create(dir_.path(), "x-");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(std::filesystem::exists((*first)->path()));
}

TEST_F(Scratch, SaysWhereItCannotBe) {
  const auto scratch = ScratchDirectory::create(at("none"), "x-");
  EXPECT_EQ(scratch.status().code(), Code::kUnavailable);
  EXPECT_THAT(scratch.status().message(), HasSubstr(at("none").string()));
}

class SlotFiles : public Directories {
 protected:
  void SetUp() override {
    auto made = SlotDirectory::create_private();
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    directory_ = *std::move(made);
  }
  // Whether a file that is written to a permit's name lies in `parent`.
  static path place_of(const SlotFilePermit& permit) {
    std::ofstream(permit.path()) << "x";
    return std::filesystem::canonical(permit.path()).parent_path();
  }
  std::unique_ptr<SlotDirectory> directory_;
};

TEST_F(SlotFiles, SmallOnesStayWhereTheyAre) {
  const auto told = directory_->place(1000, at("store"));
  ASSERT_TRUE(told.ok());
  EXPECT_THAT(*told, HasSubstr("two full slots"));
  const auto permit = directory_->reserve(1000);
  ASSERT_TRUE(permit.has_value());
  const path home = std::filesystem::canonical(directory_->path());
  EXPECT_EQ(place_of(*permit), home);
  EXPECT_EQ(mode_of(home), 0700u);
}

TEST_F(SlotFiles, ThoseTooLargeForRamLieBesideTheStore) {
  const path told_to_server = directory_->path();
  const auto told = directory_->place(uint64_t{1} << 50, at("deep") / "store");
  ASSERT_TRUE(told.ok()) << told.status().to_string();
  EXPECT_THAT(*told, HasSubstr("do not fit into a quarter"));
  const auto permit = directory_->reserve(1000);
  ASSERT_TRUE(permit.has_value());
  const path place = place_of(*permit);
  EXPECT_EQ(place.parent_path(), std::filesystem::canonical(at("deep")));
  EXPECT_THAT(place.filename().string(), StartsWith(".store.slots-"));
  EXPECT_EQ(directory_->path(), told_to_server);
}

TEST_F(SlotFiles, LeaveNothingBehind) {
  const path home = directory_->path().parent_path();
  ASSERT_TRUE(directory_->place(uint64_t{1} << 50, at("store")).ok());
  {
    const auto permit = directory_->reserve(1000);
    std::ofstream(permit->path()) << "x";
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory_->path()));
  directory_.reset();
  EXPECT_FALSE(std::filesystem::exists(home));
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path()));
}

TEST_F(SlotFiles, AreBounded) {
  ASSERT_TRUE(directory_->place(1000, at("store")).ok());
  auto first = directory_->reserve(1500);
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(directory_->reserve(600).has_value());
  EXPECT_TRUE(directory_->reserve(500).has_value());  // Given back at once.
  auto second = directory_->reserve(500);
  ASSERT_TRUE(second.has_value());
  EXPECT_NE(first->name(), second->name());
  first.reset();
  EXPECT_TRUE(directory_->reserve(1500).has_value());
}

TEST_F(SlotFiles, OneThatIsLargerThanForeseenIsAllowedAlone) {
  ASSERT_TRUE(directory_->place(1000, at("store")).ok());
  const auto large = directory_->reserve(5000);
  EXPECT_TRUE(large.has_value());
  EXPECT_FALSE(directory_->reserve(1).has_value());
}

TEST_F(SlotFiles, APermitThatWasMovedGivesItsRoomBackOnce) {
  ASSERT_TRUE(directory_->place(1000, at("store")).ok());
  {
    auto first = directory_->reserve(2000);
    const SlotFilePermit moved(*std::move(first));
    EXPECT_FALSE(directory_->reserve(1).has_value());
  }
  EXPECT_TRUE(directory_->reserve(2000).has_value());
}

TEST_F(SlotFiles, OfTheUserStayWithTheUser) {
  std::filesystem::create_directory(at("mine"));
  const auto mine = SlotDirectory::use(at("mine"));
  ASSERT_TRUE(mine.ok());
  const auto told = (*mine)->place(uint64_t{1} << 50, at("store"));
  ASSERT_TRUE(told.ok());
  EXPECT_THAT(*told, HasSubstr(at("mine").string()));
  EXPECT_EQ(place_of(*(*mine)->reserve(10)), std::filesystem::canonical(at("mine")));
  EXPECT_EQ(SlotDirectory::use(at("none")).status().code(), Code::kUnavailable);
  std::ofstream(at("file")) << "x";
  EXPECT_FALSE(SlotDirectory::use(at("file")).ok());
}

using Sizes = Directories;

TEST_F(Sizes, OfAStoreAreThoseOfItsFiles) {
  EXPECT_EQ(bytes_below(at("none")), 0u);
  std::filesystem::create_directories(at("store/a/b"));
  const uint64_t empty = bytes_below(at("store"));
  std::ofstream(at("store/a/b/f")) << std::string(100'000, 'x') << std::flush;
  EXPECT_GE(bytes_below(at("store")), empty + 100'000);
  std::filesystem::create_symlink("/", at("store/link"));
  EXPECT_LT(bytes_below(at("store")), empty + 1'000'000);
}

TEST_F(Sizes, OfNoneAreATenthOfTheFileSystem) {
  const auto space = std::filesystem::space(dir_.path());
  const uint64_t most = default_max_size(at("not/there/yet"));
  EXPECT_GT(most, 0u);
  EXPECT_LE(most, uint64_t{50} << 30);
  EXPECT_LE(most, space.capacity / 10 + 1);
  EXPECT_EQ(most, default_max_size(dir_.path()));
  EXPECT_LE(default_hot_size(), uint64_t{1} << 30);
  EXPECT_GT(available_ram(), 0u);
}

}  // namespace
}  // namespace kvkeep::daemon
