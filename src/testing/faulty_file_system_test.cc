#include "testing/faulty_file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "testing/mem_file_system.h"
#include "testing/proves.h"
#include "testing/status_matchers.h"

namespace kvkeep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class FaultyFileSystemTest : public ::testing::Test {
 protected:
  std::string read(const std::string& path, uint64_t offset = 0) {
    const auto file = fs_->open_read(path);
    if (!file.ok()) return file.status().to_string();
    std::string text(100, '?');
    const auto n = (*file)->pread(offset, {reinterpret_cast<std::byte*>(text.data()), text.size()});
    if (!n.ok()) return n.status().to_string();
    text.resize(*n);
    return text;
  }
  Status write(const std::string& path, std::string_view text) {
    KVKEEP_TRY_ASSIGN(const auto file, fs_->create_exclusive(path));
    return file->append(as_byte_span(text));
  }

  // Makes the call `op` on "d/f".
  Status call(Op op) {
    const std::string path = "d/f";
    switch (op) {
      case Op::kCreateDirs:
        return fs_->create_dirs(path);
      case Op::kListDir:
        return fs_->list_dir(path, [](const DirEntry&) {});
      case Op::kStat:
        return fs_->stat(path).status();
      case Op::kOpenRead:
        return fs_->open_read(path).status();
      case Op::kCreate:
        return fs_->create_exclusive(path).status();
      case Op::kRename:
        return fs_->rename(path, "x");
      case Op::kUnlink:
        return fs_->unlink(path);
      case Op::kSetMtime:
        return fs_->set_mtime(path, 1);
      case Op::kSyncDir:
        return fs_->sync_dir(path);
      case Op::kSpace:
        return fs_->space().status();
      case Op::kTryLock:
        return fs_->try_lock(path).status();
      default:
        return call_on_open_file(op);
    }
  }
  Status call_on_open_file(Op op) {
    std::byte byte{};
    disk_->write_all("d/f", "text");
    const auto reader = fs_->open_read("d/f");
    if (op == Op::kRead) return (*reader)->pread(0, {&byte, 1}).status();
    if (op == Op::kStatOpen) return (*reader)->stat().status();
    disk_->remove_tree("d/f");
    const auto writer = fs_->create_exclusive("d/f");
    if (op == Op::kAppend) return (*writer)->append({&byte, 1});
    return op == Op::kTruncate ? (*writer)->truncate(0) : (*writer)->sync_data();
  }

  std::shared_ptr<MemFileSystem> disk_ = std::make_shared<MemFileSystem>();
  std::shared_ptr<FaultyFileSystem> fs_ = std::make_shared<FaultyFileSystem>(disk_);
};

TEST_F(FaultyFileSystemTest, WithoutPlanItIsTransparent) {
  ASSERT_THAT(fs_->create_dirs("d"), is_ok());
  ASSERT_THAT(write("d/f", "text"), is_ok());
  EXPECT_EQ(read("d/f"), "text");
  EXPECT_EQ(disk_->read_all("d/f"), "text");
}

TEST_F(FaultyFileSystemTest, EveryOperationCanFailWithEveryErrno) {
  proves("RUL-42");
  disk_->write_all("d/other", "");
  for (int op = 0; op <= static_cast<int>(Op::kSyncData); ++op) {
    for (const int error : {EIO, ENOSPC, EDQUOT, EACCES}) {
      fs_->plan().fail_every(static_cast<Op>(op), op == static_cast<int>(Op::kSpace) ? "" : "d/f",
                             error);
      EXPECT_THAT(call(static_cast<Op>(op)), fails_with(Code::kUnavailable, error)) << op;
      fs_->plan().clear();
    }
  }
}

TEST_F(FaultyFileSystemTest, OnlyTheNthMatchingCallFails) {
  fs_->plan().fail(Op::kUnlink, "f", EACCES, 2);
  for (const char* name : {"f1", "f2", "f3", "x"}) disk_->write_all(name, "");
  EXPECT_THAT(fs_->unlink("f1"), is_ok());
  EXPECT_THAT(fs_->unlink("x"), is_ok());
  EXPECT_THAT(fs_->unlink("f2"), fails_with(Code::kUnavailable, EACCES));
  EXPECT_THAT(fs_->unlink("f3"), is_ok());
}

TEST_F(FaultyFileSystemTest, RenameMatchesByEitherPath) {
  disk_->write_all("a", "");
  fs_->plan().fail(Op::kRename, "target", EIO);
  EXPECT_THAT(fs_->rename("a", "target"), fails_with(Code::kUnavailable, EIO));
  EXPECT_THAT(fs_->rename("a", "target"), is_ok());
}

TEST_F(FaultyFileSystemTest, MissingFileAndHeldLockHaveTheirCodes) {
  fs_->plan().fail(Op::kOpenRead, "f", ENOENT);
  EXPECT_THAT(fs_->open_read("f"), fails_with(Code::kNotFound, ENOENT));
  fs_->plan().fail(Op::kTryLock, "f", EAGAIN);
  EXPECT_THAT(fs_->try_lock("f"), fails_with(Code::kFailedPrecondition, EAGAIN));
}

TEST_F(FaultyFileSystemTest, ShortAppendLeavesTheBeginning) {
  fs_->plan().short_append("f", 3, ENOSPC);
  const auto file = fs_->create_exclusive("f");
  EXPECT_THAT((*file)->append(as_byte_span("abcdef")), fails_with(Code::kUnavailable, ENOSPC));
  EXPECT_EQ(disk_->read_all("f"), "abc");
  EXPECT_THAT((*file)->append(as_byte_span("x")), is_ok());
  EXPECT_EQ(disk_->read_all("f"), "abcx");
}

TEST_F(FaultyFileSystemTest, ReadsCanBeShortEndEarlyOrLie) {
  disk_->write_all("f", "abcdef");
  fs_->plan().short_reads("f", 2);
  EXPECT_EQ(read("f"), "ab");
  EXPECT_EQ(read("f", 4), "ef");
  fs_->plan().clear();
  fs_->plan().end_reads_at("f", 4);
  EXPECT_EQ(read("f"), "abcd");
  EXPECT_EQ(read("f", 3), "d");
  EXPECT_EQ(read("f", 5), "");
  fs_->plan().clear();
  fs_->plan().flip_on_read("f", 9);
  EXPECT_EQ(read("f"), "a`cdef");
  EXPECT_EQ(read("f", 1), "`cdef");
  EXPECT_EQ(read("f", 2), "cdef");
  fs_->plan().clear();
  EXPECT_EQ(read("f"), "abcdef");
}

TEST_F(FaultyFileSystemTest, BlockedCallWaitsUntilItIsReleased) {
  disk_->write_all("f", "abc");
  BlockedCalls blocked = fs_->plan().block(Op::kRead, "f");
  std::string text;
  std::thread reader([&] { text = read("f"); });
  ASSERT_TRUE(blocked.wait_until_blocked());
  EXPECT_EQ(fs_->count(Op::kRead, "f"), 1u);
  disk_->flip_bit("f", 9);
  blocked.release();
  reader.join();
  EXPECT_EQ(text, "a`c");
  EXPECT_EQ(read("f"), "a`c");
}

TEST_F(FaultyFileSystemTest, EndOfTheBlockReleases) {
  disk_->write_all("f", "abc");
  std::thread reader;
  {
    BlockedCalls blocked = fs_->plan().block(Op::kOpenRead, "f");
    reader = std::thread([&] { EXPECT_EQ(read("f"), "abc"); });
    ASSERT_TRUE(blocked.wait_until_blocked());
  }
  reader.join();
}

TEST_F(FaultyFileSystemTest, SpaceSaysWhatItIsTold) {
  const uint64_t truth = fs_->space()->free;
  for (const uint64_t free : {uint64_t{0}, uint64_t{1000}, truth * 4}) {
    fs_->plan().set_space(free);
    EXPECT_EQ(fs_->space()->free, free);
    EXPECT_GE(fs_->space()->capacity, free);
  }
  fs_->plan().set_space(std::nullopt);
  EXPECT_EQ(fs_->space()->free, truth);
  for (const uint64_t inodes : {0, 7}) {
    fs_->plan().set_free_inodes(inodes);
    EXPECT_EQ(fs_->space()->free_inodes, inodes);
    EXPECT_GT(fs_->space()->inodes, inodes);
  }
}

TEST_F(FaultyFileSystemTest, AfterPowerLossNothingChangesTheDisk) {
  fs_->plan().lose_power_after(2);
  const auto file = fs_->create_exclusive("f");
  ASSERT_THAT(file, is_ok());
  EXPECT_THAT((*file)->append(as_byte_span("a")), is_ok());
  EXPECT_TRUE(fs_->plan().power_lost());
  for (const Op op : {Op::kCreateDirs, Op::kCreate, Op::kRename, Op::kUnlink, Op::kSyncDir}) {
    EXPECT_THAT(call(op), fails_with(Code::kUnavailable, EIO));
  }
  EXPECT_THAT((*file)->append(as_byte_span("b")), fails_with(Code::kUnavailable, EIO));
  EXPECT_THAT((*file)->sync_data(), fails_with(Code::kUnavailable, EIO));
  EXPECT_EQ(read("f"), "a");
  fs_->plan().clear();
  EXPECT_THAT((*file)->append(as_byte_span("c")), is_ok());
}

TEST_F(FaultyFileSystemTest, RecordHasEveryCallWithItsThread) {
  fs_->plan().fail(Op::kUnlink, "f", EIO);
  ASSERT_THAT(write("f", "abc"), is_ok());
  std::thread::id other;
  std::thread thread([&] {
    other = std::this_thread::get_id();
    EXPECT_FALSE(fs_->unlink("f").ok());
  });
  thread.join();
  const std::vector<Operation> calls = fs_->calls();
  ASSERT_THAT(calls, SizeIs(3));
  EXPECT_EQ(calls[1].op, Op::kAppend);
  EXPECT_EQ(calls[1].path, "f");
  EXPECT_EQ(calls[1].bytes, 3u);
  EXPECT_EQ(calls[1].thread, std::this_thread::get_id());
  EXPECT_EQ(calls[2].op, Op::kUnlink);
  EXPECT_EQ(calls[2].thread, other);
  fs_->clear_record();
  EXPECT_THAT(fs_->calls(), SizeIs(0));
  EXPECT_EQ(fs_->count(Op::kUnlink), 0u);
}

TEST_F(FaultyFileSystemTest, ChangesHaveOnlyWhatReachedTheDisk) {
  fs_->plan().fail(Op::kUnlink, "f", EIO);
  fs_->plan().short_append("f", 2, EIO);
  EXPECT_FALSE(write("f", "abc").ok());
  EXPECT_FALSE(fs_->unlink("f").ok());
  EXPECT_EQ(read("f"), "ab");
  std::vector<std::string> changes;
  for (const Operation& change : fs_->changes()) {
    changes.push_back(std::string(name_of(change.op)) + " " + change.data);
  }
  EXPECT_THAT(changes, ElementsAre("create_exclusive ", "append ab"));
}

}  // namespace
}  // namespace kvkeep::testing
