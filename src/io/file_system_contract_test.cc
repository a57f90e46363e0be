// What every FileSystem promises, asked of the machine's and of the one in memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "io/buffer_pool.h"
#include "io/posix_file_system.h"
#include "testing/mem_file_system.h"
#include "testing/proves.h"
#include "testing/status_matchers.h"
#include "testing/temp_dir.h"

namespace kvkeep {
namespace {

using ::testing::ElementsAre;
using testing::fails_with;
using ::testing::HasSubstr;
using testing::is_ok;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

enum class Kind { kMemory, kTemporaryDirectory, kSharedMemory };

std::string name_of(Kind kind) {
  switch (kind) {
    case Kind::kMemory:
      return "Memory";
    case Kind::kTemporaryDirectory:
      return "TemporaryDirectory";
    case Kind::kSharedMemory:
      return "SharedMemory";
  }
  return "";
}

// A file system of one kind and verbs for it.
class FileSystemContract : public ::testing::TestWithParam<Kind> {
 protected:
  // Direct I/O works in most temporary directories; shared memory (tmpfs) refuses it.
  void SetUp() override {
    if (GetParam() == Kind::kMemory) {
      fs_ = std::make_shared<testing::MemFileSystem>();
      return;
    }
    const bool shared = GetParam() == Kind::kSharedMemory;
    if (shared && !std::filesystem::is_directory("/dev/shm")) GTEST_SKIP() << "no /dev/shm";
    shared ? dir_.emplace("/dev/shm") : dir_.emplace();
    Result<std::shared_ptr<FileSystem>> opened = open_posix_file_system(dir_->path());
    ASSERT_THAT(opened, is_ok());
    fs_ = *opened;
  }

  void write(std::string_view path, std::string_view text) {
    Result<std::unique_ptr<WriteFile>> file = fs_->create_exclusive(path);
    ASSERT_THAT(file, is_ok());
    ASSERT_THAT((*file)->append(as_byte_span(text)), is_ok());
  }

  std::string read(std::string_view path) {
    Result<std::unique_ptr<ReadFile>> file = fs_->open_read(path);
    if (!file.ok()) return file.status().to_string();
    return read(**file, 0, 1 << 20);
  }
  static std::string read(ReadFile& file, uint64_t offset, size_t bytes) {
    std::string text(bytes, '?');
    Result<size_t> n = file.pread(offset, {reinterpret_cast<std::byte*>(text.data()), bytes});
    if (!n.ok()) return n.status().to_string();
    text.resize(*n);
    return text;
  }

  std::vector<std::string> list(std::string_view path) {
    std::vector<std::string> names;
    const Status status =
        fs_->list_dir(path, [&](const DirEntry& entry) { names.push_back(entry.name); });
    if (!status.ok()) names.push_back(status.to_string());
    return names;
  }

  std::optional<testing::TempDir> dir_;
  std::shared_ptr<FileSystem> fs_;
};

INSTANTIATE_TEST_SUITE_P(All, FileSystemContract,
                         ::testing::Values(Kind::kMemory, Kind::kTemporaryDirectory,
                                           Kind::kSharedMemory),
                         [](const auto& param) { return name_of(param.param); });

TEST_P(FileSystemContract, RootIsAnEmptyDirectory) {
  const Result<FileStat> stat = fs_->stat("");
  ASSERT_THAT(stat, is_ok());
  EXPECT_EQ(stat->kind, FileKind::kDirectory);
  EXPECT_THAT(list(""), IsEmpty());
}

TEST_P(FileSystemContract, FileGivesBackWhatWasAppended) {
  Result<std::unique_ptr<WriteFile>> file = fs_->create_exclusive("f");
  ASSERT_THAT(file, is_ok());
  EXPECT_THAT((*file)->append(as_byte_span("one ")), is_ok());
  EXPECT_THAT((*file)->append({}), is_ok());
  EXPECT_THAT((*file)->append(as_byte_span("two")), is_ok());
  EXPECT_THAT((*file)->sync_data(), is_ok());
  EXPECT_EQ((*file)->stat()->size, 7u);
  EXPECT_EQ(read("f"), "one two");
}

TEST_P(FileSystemContract, CreateRefusesANameThatExists) {
  testing::proves("DEF-69");
  write("f", "old");
  EXPECT_THAT(fs_->create_exclusive("f"), fails_with(Code::kUnavailable, EEXIST));
  ASSERT_THAT(fs_->create_dirs("d"), is_ok());
  EXPECT_THAT(fs_->create_exclusive("d"), fails_with(Code::kUnavailable, EEXIST));
  EXPECT_EQ(read("f"), "old");
}

TEST_P(FileSystemContract, WhatIsNotThereIsNotFound) {
  const auto not_found = fails_with(Code::kNotFound, ENOENT);
  for (const char* path : {"x", "x/y"}) {
    EXPECT_THAT(fs_->stat(path), not_found) << path;
    EXPECT_THAT(fs_->open_read(path), not_found) << path;
    EXPECT_THAT(fs_->unlink(path), not_found) << path;
    EXPECT_THAT(fs_->set_mtime(path, 1), not_found) << path;
    EXPECT_THAT(fs_->sync_dir(path), not_found) << path;
    EXPECT_THAT(fs_->try_lock(path), not_found) << path;
    EXPECT_THAT(fs_->rename(path, "z"), not_found) << path;
    EXPECT_THAT(fs_->list_dir(path, [](const DirEntry&) {}), not_found) << path;
  }
  EXPECT_THAT(fs_->create_exclusive("x/y"), not_found);
  write("f", "");
  EXPECT_THAT(fs_->rename("f", "x/y"), not_found);
}

TEST_P(FileSystemContract, FileIsNoDirectory) {
  write("f", "");
  const auto not_a_directory = fails_with(Code::kUnavailable, ENOTDIR);
  EXPECT_THAT(fs_->stat("f/x"), not_a_directory);
  EXPECT_THAT(fs_->open_read("f/x"), not_a_directory);
  EXPECT_THAT(fs_->create_exclusive("f/x"), not_a_directory);
  EXPECT_THAT(fs_->create_dirs("f"), not_a_directory);
  EXPECT_THAT(fs_->create_dirs("f/x"), not_a_directory);
  EXPECT_THAT(fs_->list_dir("f", [](const DirEntry&) {}), not_a_directory);
  EXPECT_THAT(fs_->sync_dir("f"), not_a_directory);
}

TEST_P(FileSystemContract, DirectoryIsNoFile) {
  ASSERT_THAT(fs_->create_dirs("d"), is_ok());
  EXPECT_THAT(fs_->open_read("d"), fails_with(Code::kUnavailable, EISDIR));
  EXPECT_THAT(fs_->try_lock("d"), fails_with(Code::kUnavailable, EISDIR));
  EXPECT_FALSE(fs_->unlink("d").ok());
  EXPECT_EQ(fs_->stat("d")->kind, FileKind::kDirectory);
}

TEST_P(FileSystemContract, PathsThatCouldLeaveTheRootAreInvalid) {
  testing::proves("RUL-66");
  for (const std::string& path : std::vector<std::string>{"/etc", "..", "a/../b", "./a", "a//b",
                                                          "a/", "/", std::string("a\0b", 3)}) {
    const auto invalid = fails_with(Code::kInvalidArgument, 0);
    EXPECT_THAT(fs_->create_dirs(path), invalid) << path;
    EXPECT_THAT(fs_->stat(path), invalid) << path;
    EXPECT_THAT(fs_->open_read(path), invalid) << path;
    EXPECT_THAT(fs_->create_exclusive(path), invalid) << path;
    EXPECT_THAT(fs_->unlink(path), invalid) << path;
    EXPECT_THAT(fs_->rename(path, "b"), invalid) << path;
    EXPECT_THAT(fs_->rename("b", path), invalid) << path;
  }
}

TEST_P(FileSystemContract, CreateDirsMakesParentsAndAcceptsThem) {
  EXPECT_THAT(fs_->create_dirs("a/b/c"), is_ok());
  EXPECT_THAT(fs_->create_dirs("a/b/c"), is_ok());
  EXPECT_THAT(fs_->create_dirs("a/b/d"), is_ok());
  EXPECT_THAT(fs_->create_dirs(""), is_ok());
  EXPECT_THAT(list("a/b"), UnorderedElementsAre("c", "d"));
  EXPECT_THAT(fs_->sync_dir("a/b"), is_ok());
  EXPECT_THAT(fs_->sync_dir(""), is_ok());
}

TEST_P(FileSystemContract, ListNamesOneDirectory) {
  ASSERT_THAT(fs_->create_dirs("a/b"), is_ok());
  write("a/f", "");
  write("a/b/hidden", "");
  write("ab", "");
  EXPECT_THAT(list(""), UnorderedElementsAre("a", "ab"));
  EXPECT_THAT(list("a"), UnorderedElementsAre("b", "f"));
  std::vector<FileKind> kinds;
  ASSERT_THAT(fs_->list_dir("a",
                            [&](const DirEntry& e) {
                              if (e.name == "f") kinds.push_back(e.kind);
                            }),
              is_ok());
  EXPECT_THAT(kinds, ElementsAre(FileKind::kFile));
}

TEST_P(FileSystemContract, ListedFilesMayBeRemovedMeanwhile) {
  for (int i = 0; i < 200; ++i) write("f" + std::to_string(i), "");
  int seen = 0;
  ASSERT_THAT(fs_->list_dir("",
                            [&](const DirEntry& entry) {
                              ++seen;
                              EXPECT_THAT(fs_->unlink(entry.name), is_ok());
                            }),
              is_ok());
  EXPECT_EQ(seen, 200);
  EXPECT_THAT(list(""), IsEmpty());
}

TEST_P(FileSystemContract, RenameReplaces) {
  ASSERT_THAT(fs_->create_dirs("d"), is_ok());
  write("new", "new");
  write("d/old", "old");
  EXPECT_THAT(fs_->rename("new", "d/old"), is_ok());
  EXPECT_EQ(read("d/old"), "new");
  EXPECT_THAT(list(""), ElementsAre("d"));
  EXPECT_THAT(fs_->rename("d/old", "d/old"), is_ok());
  EXPECT_EQ(read("d/old"), "new");
  ASSERT_THAT(fs_->create_dirs("e"), is_ok());
  EXPECT_THAT(fs_->rename("d/old", "e"), fails_with(Code::kUnavailable, EISDIR));
}

TEST_P(FileSystemContract, ReplacedFileStaysReadableForWhoHasItOpen) {
  write("f", "old");
  Result<std::unique_ptr<ReadFile>> open = fs_->open_read("f");
  ASSERT_THAT(open, is_ok());
  write("g", "new");
  ASSERT_THAT(fs_->rename("g", "f"), is_ok());
  EXPECT_EQ(read(**open, 0, 10), "old");
  EXPECT_EQ(read("f"), "new");
}

TEST_P(FileSystemContract, UnlinkedFileStaysReadableForWhoHasItOpen) {
  write("f", "text");
  Result<std::unique_ptr<ReadFile>> open = fs_->open_read("f");
  ASSERT_THAT(open, is_ok());
  ASSERT_THAT(fs_->unlink("f"), is_ok());
  EXPECT_EQ(read(**open, 0, 10), "text");
  EXPECT_THAT(fs_->stat("f"), fails_with(Code::kNotFound, ENOENT));
}

TEST_P(FileSystemContract, ReadsEndAtTheEndOfTheFile) {
  write("f", "0123456789");
  Result<std::unique_ptr<ReadFile>> file = fs_->open_read("f");
  ASSERT_THAT(file, is_ok());
  EXPECT_EQ(read(**file, 7, 100), "789");
  EXPECT_EQ(read(**file, 10, 100), "");
  EXPECT_EQ(read(**file, 1000, 100), "");
  EXPECT_EQ(read(**file, 3, 2), "34");
  EXPECT_EQ(read(**file, 3, 0), "");
}

TEST_P(FileSystemContract, TruncateCutsAndAppendGoesOnThere) {
  Result<std::unique_ptr<WriteFile>> file = fs_->create_exclusive("f");
  ASSERT_THAT(file, is_ok());
  ASSERT_THAT((*file)->append(as_byte_span("0123456789")), is_ok());
  EXPECT_THAT((*file)->truncate(11), fails_with(Code::kUnavailable, EINVAL));
  EXPECT_THAT((*file)->truncate(4), is_ok());
  EXPECT_EQ((*file)->stat()->size, 4u);
  EXPECT_THAT((*file)->append(as_byte_span("x")), is_ok());
  EXPECT_EQ(read("f"), "0123x");
}

TEST_P(FileSystemContract, TimeIsKeptAsSet) {
  write("f", "");
  ASSERT_THAT(fs_->create_dirs("d"), is_ok());
  for (const double time : {0.0, 1767225600.25, 1767225600.999999, 5e9}) {
    EXPECT_THAT(fs_->set_mtime("f", time), is_ok());
    EXPECT_NEAR(fs_->stat("f")->mtime, time, 2e-6);
    EXPECT_THAT(fs_->set_mtime("d", time), is_ok());
    EXPECT_NEAR(fs_->stat("d")->mtime, time, 2e-6);
  }
}

TEST_P(FileSystemContract, TimesOfNewFilesDoNotGoBack) {
  write("a", "x");
  write("b", "x");
  EXPECT_LE(fs_->stat("a")->mtime, fs_->stat("b")->mtime);
  EXPECT_GT(fs_->stat("a")->mtime, 1.6e9);
}

TEST_P(FileSystemContract, FilesAreChargedInUnitsOfSpace) {
  testing::proves("RUL-05");
  Result<SpaceInfo> space = fs_->space();
  ASSERT_THAT(space, is_ok());
  EXPECT_GT(space->capacity, 0u);
  EXPECT_LE(space->free, space->capacity);
  ASSERT_GT(space->block_bytes, 0u);
  for (const size_t bytes : {1, 4096, 4097, 100'000}) {
    const std::string name = std::to_string(bytes);
    write(name, std::string(bytes, 'x'));
    EXPECT_EQ(fs_->stat(name)->size, bytes);
    EXPECT_EQ(fs_->stat(name)->allocated, round_up(bytes, space->block_bytes)) << bytes;
  }
}

TEST_P(FileSystemContract, DifferentFilesHaveDifferentIdentities) {
  write("a", "");
  write("b", "");
  EXPECT_NE(fs_->stat("a")->inode, fs_->stat("b")->inode);
  EXPECT_EQ(fs_->stat("a")->device, fs_->stat("b")->device);
  const uint64_t inode = fs_->stat("a")->inode;
  ASSERT_THAT(fs_->rename("a", "b"), is_ok());
  EXPECT_EQ(fs_->stat("b")->inode, inode);
}

TEST_P(FileSystemContract, LockIsExclusiveAndEndsWithItsHolder) {
  write("lock", "");
  Result<std::unique_ptr<FileLock>> first = fs_->try_lock("lock");
  ASSERT_THAT(first, is_ok());
  const Status second = fs_->try_lock("lock").status();
  EXPECT_THAT(second, fails_with(Code::kFailedPrecondition, EAGAIN));
  EXPECT_THAT(second.message(), HasSubstr("lock"));
  first = Status(Code::kNotFound, "given back");
  EXPECT_THAT(fs_->try_lock("lock"), is_ok());
}

TEST_P(FileSystemContract, LockedFileCanBeRemoved) {
  write("lock", "pid");
  Result<std::unique_ptr<FileLock>> lock = fs_->try_lock("lock");
  ASSERT_THAT(lock, is_ok());
  EXPECT_EQ(read("lock"), "pid");
  EXPECT_THAT(fs_->unlink("lock"), is_ok());
  write("lock", "");
  EXPECT_THAT(fs_->try_lock("lock"), is_ok());
}

TEST_P(FileSystemContract, MessagesNameOperationAndPath) {
  EXPECT_THAT(fs_->open_read("some/file").status().message(), HasSubstr("some/file"));
  EXPECT_THAT(fs_->open_read("some/file").status().message(), HasSubstr("open"));
  EXPECT_THAT(fs_->unlink("gone").message(), HasSubstr("unlink"));
  EXPECT_THAT(fs_->rename("gone", "b").message(), HasSubstr("gone"));
}

// Sizes and offsets around the units of direct I/O, at addresses that suit it or do not.
TEST_P(FileSystemContract, EveryMixOfAlignedAndOddRequestsGivesTheSameBytes) {
  const std::vector<size_t> sizes = {1, 511, 512, 4095, 4096, 4097, 8192, 12'800, 70'000};
  auto pool = BufferPool::create({.limit_bytes = 16 << 20});
  Result<PooledBuffer> buffer = pool->allocate(1 << 20);
  ASSERT_THAT(buffer, is_ok());
  for (const size_t size : sizes) {
    for (const size_t shift : {0, 1}) {
      std::byte* data = buffer->data() + shift;
      for (size_t i = 0; i < size; ++i) data[i] = static_cast<std::byte>(i * 31 + i / 256);
      const std::string expected(reinterpret_cast<const char*>(data), size);
      const std::string name = std::to_string(size) + "-" + std::to_string(shift);
      Result<std::unique_ptr<WriteFile>> file = fs_->create_exclusive(name);
      ASSERT_THAT(file, is_ok());
      ASSERT_THAT((*file)->append({data, size}), is_ok());
      Result<std::unique_ptr<ReadFile>> back = fs_->open_read(name);
      ASSERT_THAT(back, is_ok());
      for (const size_t offset : {0, 1, 512, 4096, 8192}) {
        for (const size_t length : {1, 4096, 8192, 131'072}) {
          std::fill_n(data, length, std::byte{0xEE});
          Result<size_t> n = (*back)->pread(offset, {data, length});
          ASSERT_THAT(n, is_ok());
          const std::string wanted =
              offset < size ? expected.substr(offset, length) : std::string();
          ASSERT_EQ(as_text({data, *n}), wanted) << name << " " << offset << " " << length;
        }
      }
    }
  }
}

// How an image is written: padded to whole units, then cut.
TEST_P(FileSystemContract, PaddedWriteThatIsCutHasTheExactSize) {
  auto pool = BufferPool::create({.limit_bytes = 16 << 20});
  Result<PooledBuffer> buffer = pool->allocate(1 << 20);
  ASSERT_THAT(buffer, is_ok());
  std::fill_n(buffer->data(), buffer->capacity(), std::byte{'x'});
  Result<std::unique_ptr<WriteFile>> file = fs_->create_exclusive("f");
  ASSERT_THAT(file, is_ok());
  ASSERT_THAT((*file)->append({buffer->data(), 65'536}), is_ok());
  ASSERT_THAT((*file)->append({buffer->data(), 36'864}), is_ok());
  ASSERT_THAT((*file)->truncate(100'001), is_ok());
  EXPECT_EQ((*file)->stat()->size, 100'001u);
  EXPECT_EQ((*file)->stat()->allocated, round_up(100'001, fs_->space()->block_bytes));
  EXPECT_EQ(read("f"), std::string(100'001, 'x'));
}

TEST_P(FileSystemContract, FileThatIsCutWhileOpenGivesOnlyWhatIsLeft) {
  write("f", std::string(10'000, 'x'));
  Result<std::unique_ptr<ReadFile>> open = fs_->open_read("f");
  ASSERT_THAT(open, is_ok());
  EXPECT_EQ(read(**open, 0, 4096).size(), 4096u);
  if (dir_.has_value()) {
    std::filesystem::resize_file(dir_->path() / "f", 5000);
  } else {
    static_cast<testing::MemFileSystem&>(*fs_).truncate("f", 5000);
  }
  EXPECT_EQ(read(**open, 4096, 8192).size(), 904u);
  EXPECT_EQ((*open)->stat()->size, 5000u);
}

}  // namespace
}  // namespace kvkeep
