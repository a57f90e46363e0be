#include "disk/owner_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "disk/store_layout.h"
#include "testing/mem_file_system.h"
#include "testing/proves.h"

namespace kvkeep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kFirst = "00000000000000aa";
constexpr const char* kSecond = "00000000000000bb";

class OwnerLockTest : public ::testing::Test {
 protected:
  OwnerLockTest() { EXPECT_TRUE(files_.create_dirs(kServiceDir).ok()); }

  Result<std::unique_ptr<OwnerLock>> take(const std::string& nonce) {
    return OwnerLock::take(files_, {nonce, "/srv/store", 1767225600.25});
  }

  testing::MemFileSystem files_;
};

TEST_F(OwnerLockTest, OwnerFileNamesProcessHostAndTime) {
  const auto owner = take(kFirst);
  ASSERT_TRUE(owner.ok()) << owner.status().to_string();
  const std::string text = files_.read_all(owner_path(kFirst)).value_or("");
  EXPECT_THAT(text, HasSubstr("pid " + std::to_string(getpid()) + "\n"));
  EXPECT_THAT(text, HasSubstr("host "));
  EXPECT_THAT(text, HasSubstr("time 1767225600\n"));
}

TEST_F(OwnerLockTest, SecondOwnerIsRefusedByName) {
  testing::proves("RUL-03");
  const auto first = take(kFirst);
  ASSERT_TRUE(first.ok());
  const auto second = take(kSecond);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(second.status().message(), "/srv/store is in use by process " +
                                           std::to_string(getpid()) + " (owner-" + kFirst +
                                           "): close it or use another directory");
  EXPECT_TRUE(files_.read_all(owner_path(kFirst)));
  EXPECT_FALSE(files_.read_all(owner_path(kSecond)));
}

TEST_F(OwnerLockTest, EndingGivesTheStoreBackAndLeavesNoOwnerFile) {
  { const auto first = take(kFirst); }
  EXPECT_THAT(files_.paths(), ElementsAre(std::string(kOpenLock)));
  EXPECT_TRUE(take(kSecond).ok());
}

TEST_F(OwnerLockTest, OwnerFilesOfEndedProcessesAreRemoved) {
  testing::proves("RUL-03", "RUL-46");
  files_.write_all(owner_path(kFirst), "pid 1\n");
  files_.write_all(owner_path("00000000000000cc") + ".tmp", "");
  const auto owner = take(kSecond);
  ASSERT_TRUE(owner.ok()) << owner.status().to_string();
  EXPECT_THAT(files_.paths(), ElementsAre(std::string(kOpenLock), owner_path(kSecond)));
}

TEST_F(OwnerLockTest, OwnNonceOfAnEndedProcessIsTakenOver) {
  files_.write_all(owner_path(kFirst), "pid 1\n");
  EXPECT_TRUE(take(kFirst).ok());
}

TEST_F(OwnerLockTest, OpenerInProgressRefusesOthers) {
  files_.write_all(kOpenLock, "");
  const auto opening = files_.try_lock(kOpenLock);
  ASSERT_TRUE(opening.ok());
  const auto owner = take(kFirst);
  ASSERT_FALSE(owner.ok());
  EXPECT_EQ(owner.status().code(), Code::kFailedPrecondition);
  EXPECT_THAT(owner.status().message(), HasSubstr("being opened by another process"));
}

TEST_F(OwnerLockTest, OwnerFileIsLockedBeforeItHasItsName) {
  testing::proves("RUL-46");
  bool locked_when_renamed = false;
  files_.on_operation([&](const testing::Operation& operation) {
    if (operation.op != testing::Op::kRename) return;
    EXPECT_EQ(operation.to, owner_path(kFirst));
    locked_when_renamed = !files_.try_lock(operation.to).ok();
  });
  ASSERT_TRUE(take(kFirst).ok());
  EXPECT_TRUE(locked_when_renamed);
}

TEST_F(OwnerLockTest, UnreadableOwnerTextStillRefuses) {
  for (const char* text : {"", "garbage", "pid", "host x\n", "\n\n\n", "pid \n"}) {
    files_.write_all(owner_path(kFirst), text);
    const auto lock = files_.try_lock(owner_path(kFirst));
    const auto owner = take(kSecond);
    ASSERT_FALSE(owner.ok());
    EXPECT_THAT(owner.status().message(), HasSubstr("in use by another process")) << text;
  }
}

TEST_F(OwnerLockTest, ControlCharactersOfAnOwnerTextDoNotReachTheMessage) {
  files_.write_all(owner_path(kFirst), "pid 12\x1b[31m\nhost o\x07ther\n");
  const auto lock = files_.try_lock(owner_path(kFirst));
  const auto owner = take(kSecond);
  ASSERT_FALSE(owner.ok());
  EXPECT_THAT(owner.status().message(), HasSubstr("process 12?[31m on host o?ther"));
}

TEST_F(OwnerLockTest, ThingsNamedLikeOwnersThatAreNoFilesAreIgnored) {
  ASSERT_TRUE(files_.create_dirs(owner_path(kFirst)).ok());
  files_.make_link(owner_path("00000000000000cc"));
  EXPECT_TRUE(take(kSecond).ok());
  EXPECT_TRUE(files_.stat(owner_path(kFirst)).ok());
}

TEST_F(OwnerLockTest, FullDiskDoesNotKeepTheOwnerOut) {
  files_.write_all("foreign", std::string(1000, 'x'));
  files_.set_capacity(1000);
  const auto owner = take(kFirst);
  EXPECT_TRUE(owner.ok()) << owner.status().to_string();
}

TEST_F(OwnerLockTest, NonceMustBeSixteenHexCharacters) {
  for (const char* nonce :
       {"", "00", "00000000000000AA", "../../../../../x", "00000000000000aaa"}) {
    const auto owner = take(nonce);
    ASSERT_FALSE(owner.ok()) << nonce;
    EXPECT_EQ(owner.status().code(), Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace kvkeep
