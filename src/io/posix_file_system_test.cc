// What only the machine's file system has: a root to open, links, permissions, other processes.

#include "io/posix_file_system.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "testing/proves.h"
#include "testing/status_matchers.h"
#include "testing/temp_dir.h"

namespace kvkeep {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::fails_with;
using ::testing::HasSubstr;
using testing::is_ok;

constexpr uid_t kNobody = 65534;

mode_t mode_of(const fs::path& path) {
  struct stat s = {};
  ::lstat(path.c_str(), &s);
  return s.st_mode & 07777;
}

// The superuser may do everything, so tests of permissions run as somebody else.
class AsOrdinaryUser {
 public:
  AsOrdinaryUser() {
    if (::geteuid() == 0) {
      EXPECT_EQ(::seteuid(kNobody), 0);
    }
  }
  ~AsOrdinaryUser() {
    if (::getuid() == 0) {
      EXPECT_EQ(::seteuid(0), 0);
    }
  }
};

class PosixFileSystemTest : public ::testing::Test {
 protected:
  fs::path path(const std::string& name) const { return dir_.path() / name; }

  std::shared_ptr<FileSystem> open(const fs::path& root) {
    Result<std::shared_ptr<FileSystem>> opened = open_posix_file_system(root);
    EXPECT_THAT(opened, is_ok());
    return opened.ok() ? *opened : nullptr;
  }
  static void put(const fs::path& file, const std::string& text) { std::ofstream(file) << text; }

  testing::TempDir dir_;
};

TEST_F(PosixFileSystemTest, RootIsCreatedWithItsParentsForThisUserAlone) {
  testing::proves("RUL-66", "DEF-69");
  ASSERT_NE(open(path("a/b/c")), nullptr);
  for (const char* name : {"a", "a/b", "a/b/c"}) EXPECT_EQ(mode_of(path(name)), 0700u) << name;
}

TEST_F(PosixFileSystemTest, ExistingRootKeepsItsMode) {
  fs::create_directory(path("root"));
  ASSERT_EQ(::chmod(path("root").c_str(), 0750), 0);
  ASSERT_NE(open(path("root")), nullptr);
  EXPECT_EQ(mode_of(path("root")), 0750u);
}

TEST_F(PosixFileSystemTest, RootMayEndInASlashOrBeRelative) {
  ASSERT_NE(open(path("a/b/")), nullptr);
  EXPECT_TRUE(fs::is_directory(path("a/b")));
  const fs::path before = fs::current_path();
  fs::current_path(dir_.path());
  const std::shared_ptr<FileSystem> relative = open("c/d");
  fs::current_path(before);
  ASSERT_NE(relative, nullptr);
  EXPECT_THAT(relative->create_dirs("e"), is_ok());
  EXPECT_THAT(relative->stat(""), is_ok());
  EXPECT_TRUE(fs::is_directory(path("c/d/e")));
}

TEST_F(PosixFileSystemTest, RootMayBeALink) {
  testing::proves("RUL-66");
  fs::create_directory(path("real"));
  fs::create_directory_symlink(path("real"), path("link"));
  const std::shared_ptr<FileSystem> files = open(path("link"));
  ASSERT_NE(files, nullptr);
  EXPECT_THAT(files->create_exclusive("f"), is_ok());
  EXPECT_TRUE(fs::exists(path("real/f")));
}

TEST_F(PosixFileSystemTest, RootIsResolvedOnce) {
  testing::proves("RUL-66", "RUL-62");
  fs::create_directory(path("first"));
  fs::create_directory(path("second"));
  fs::create_directory_symlink(path("first"), path("link"));
  const std::shared_ptr<FileSystem> files = open(path("link"));
  fs::remove(path("link"));
  fs::create_directory_symlink(path("second"), path("link"));
  EXPECT_THAT(files->create_exclusive("f"), is_ok());
  EXPECT_TRUE(fs::exists(path("first/f")));
  EXPECT_FALSE(fs::exists(path("second/f")));
}

TEST_F(PosixFileSystemTest, RemovedOrReplacedRootIsNotFound) {
  testing::proves("RUL-62");
  const std::shared_ptr<FileSystem> files = open(path("root"));
  ASSERT_THAT(files->stat(""), is_ok());
  fs::rename(path("root"), path("moved"));
  EXPECT_THAT(files->stat(""), fails_with(Code::kNotFound, ENOENT));
  fs::create_directory(path("root"));
  EXPECT_THAT(files->stat(""), fails_with(Code::kNotFound, ENOENT));
  fs::remove_all(path("moved"));
  EXPECT_FALSE(files->create_exclusive("f").ok());
  EXPECT_FALSE(fs::exists(path("root/f")));
}

TEST_F(PosixFileSystemTest, RootThatIsAFileIsRefusedByName) {
  testing::proves("RUL-36");
  put(path("file"), "");
  const Status itself = open_posix_file_system(path("file")).status();
  EXPECT_THAT(itself, fails_with(Code::kFailedPrecondition, ENOTDIR));
  EXPECT_THAT(itself.message(), AllOf(HasSubstr("file'"), HasSubstr("choose another directory")));
  const Status below = open_posix_file_system(path("file/root")).status();
  EXPECT_THAT(below, fails_with(Code::kFailedPrecondition, ENOTDIR));
  EXPECT_THAT(below.message(), HasSubstr("file' is a file"));
}

TEST_F(PosixFileSystemTest, RootThatIsALinkToNothingIsRefused) {
  fs::create_directory_symlink(path("nowhere"), path("link"));
  const Status status = open_posix_file_system(path("link")).status();
  EXPECT_THAT(status, fails_with(Code::kFailedPrecondition, ENOENT));
  EXPECT_THAT(status.message(), HasSubstr("remove the link"));
}

TEST_F(PosixFileSystemTest, RootWithoutPermissionIsRefusedWithAdvice) {
  testing::proves("RUL-36");
  fs::create_directory(path("theirs"));
  fs::create_directory(path("readable"));
  ASSERT_EQ(::chmod(path("theirs").c_str(), 0500), 0);
  ASSERT_EQ(::chmod(path("readable").c_str(), 0555), 0);
  ASSERT_EQ(::chmod(dir_.path().c_str(), 0755), 0);
  const AsOrdinaryUser user;
  for (const char* name : {"theirs", "theirs/root", "readable", "readable/root"}) {
    const Status status = open_posix_file_system(path(name)).status();
    EXPECT_THAT(status, fails_with(Code::kFailedPrecondition, EACCES)) << name;
    EXPECT_THAT(status.message(), AllOf(HasSubstr(name), HasSubstr("permission"))) << name;
  }
}

TEST_F(PosixFileSystemTest, EmptyRootIsInvalid) {
  EXPECT_THAT(open_posix_file_system(""), fails_with(Code::kInvalidArgument, 0));
}

TEST_F(PosixFileSystemTest, ReadersCreateNothingAndNeedNoPermissionToWrite) {
  testing::proves("RUL-65");
  const auto missing = open_posix_file_system(path("root"), RootUse::kReadExisting);
  EXPECT_THAT(missing, fails_with(Code::kNotFound, ENOENT));
  EXPECT_FALSE(fs::exists(path("root")));
  fs::create_directory(path("root"));
  put(path("root/f"), "text");
  ASSERT_EQ(::chmod(path("root").c_str(), 0555), 0);
  ASSERT_EQ(::chmod(dir_.path().c_str(), 0755), 0);
  const AsOrdinaryUser user;
  const auto readable = open_posix_file_system(path("root"), RootUse::kReadExisting);
  ASSERT_THAT(readable, is_ok());
  EXPECT_EQ((*readable)->stat("f")->size, 4u);
}

TEST_F(PosixFileSystemTest, FilesAndDirectoriesAreForThisUserAlone) {
  testing::proves("DEF-69");
  const mode_t before = ::umask(0);
  const std::shared_ptr<FileSystem> files = open(path("root"));
  ASSERT_THAT(files->create_dirs("a/b"), is_ok());
  ASSERT_THAT(files->create_exclusive("a/b/f"), is_ok());
  ::umask(before);
  EXPECT_EQ(mode_of(path("root")), 0700u);
  EXPECT_EQ(mode_of(path("root/a")), 0700u);
  EXPECT_EQ(mode_of(path("root/a/b")), 0700u);
  EXPECT_EQ(mode_of(path("root/a/b/f")), 0600u);
}

// A store with links in the places of a directory and of a file. Outside lies what must stay
// untouched.
class LinksTest : public PosixFileSystemTest {
 protected:
  void SetUp() override {
    files_ = open(path("root"));
    fs::create_directory(path("outside"));
    put(path("outside/file"), "untouched");
    written_ = fs::last_write_time(path("outside/file"));
    fs::create_directory_symlink(path("outside"), path("root/dir"));
    fs::create_symlink(path("outside/file"), path("root/file"));
    fs::create_symlink(path("outside/new"), path("root/dangling"));
  }
  void TearDown() override {
    std::ifstream file(path("outside/file"));
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "untouched");
    EXPECT_EQ(fs::last_write_time(path("outside/file")), written_);
    EXPECT_EQ(std::distance(fs::directory_iterator(path("outside")), fs::directory_iterator()), 1);
  }
  std::shared_ptr<FileSystem> files_;
  fs::file_time_type written_;
};

TEST_F(LinksTest, LinksBelowTheRootAreNotFollowed) {
  testing::proves("RUL-66", "DEF-69");
  const auto is_link = fails_with(Code::kUnavailable, ELOOP);
  EXPECT_THAT(files_->open_read("file"), is_link);
  EXPECT_THAT(files_->open_read("dir/file"), is_link);
  EXPECT_THAT(files_->create_exclusive("dir/new"), is_link);
  EXPECT_THAT(files_->create_dirs("dir"), is_link);
  EXPECT_THAT(files_->create_dirs("dir/new"), is_link);
  EXPECT_THAT(files_->list_dir("dir", [](const DirEntry&) {}), is_link);
  EXPECT_THAT(files_->stat("dir/file"), is_link);
  EXPECT_THAT(files_->unlink("dir/file"), is_link);
  EXPECT_THAT(files_->rename("dir/file", "x"), is_link);
  EXPECT_THAT(files_->rename("file", "dir/x"), is_link);
  EXPECT_THAT(files_->set_mtime("dir/file", 1), is_link);
  EXPECT_THAT(files_->sync_dir("dir"), is_link);
  EXPECT_THAT(files_->try_lock("file"), is_link);
  EXPECT_THAT(files_->try_lock("dir/file"), is_link);
}

TEST_F(LinksTest, LinkInTheWayOfANewFileIsThere) {
  testing::proves("DEF-69");
  EXPECT_THAT(files_->create_exclusive("dangling"), fails_with(Code::kUnavailable, EEXIST));
}

TEST_F(LinksTest, LinksThemselvesAreSeenAndRemoved) {
  testing::proves("RUL-66");
  EXPECT_EQ(files_->stat("file")->kind, FileKind::kLink);
  EXPECT_EQ(files_->stat("dir")->kind, FileKind::kLink);
  ASSERT_THAT(
      files_->list_dir(
          "", [](const DirEntry& entry) { EXPECT_EQ(entry.kind, FileKind::kLink) << entry.name; }),
      is_ok());
  EXPECT_THAT(files_->set_mtime("file", 1), is_ok());
  EXPECT_THAT(files_->create_exclusive("block"), is_ok());
  EXPECT_THAT(files_->rename("block", "file"), is_ok());
  EXPECT_EQ(files_->stat("file")->kind, FileKind::kFile);
  EXPECT_THAT(files_->unlink("dir"), is_ok());
  EXPECT_THAT(files_->unlink("dangling"), is_ok());
}

TEST_F(PosixFileSystemTest, PipeInThePlaceOfAFileDoesNotBlock) {
  const std::shared_ptr<FileSystem> files = open(path("root"));
  ASSERT_EQ(::mkfifo(path("root/pipe").c_str(), 0600), 0);
  EXPECT_THAT(files->open_read("pipe"), fails_with(Code::kUnavailable, EINVAL));
  EXPECT_THAT(files->try_lock("pipe"), fails_with(Code::kUnavailable, EINVAL));
}

TEST_F(PosixFileSystemTest, OtherProcessesSeeTheLockUntilTheHolderEnds) {
  testing::proves("RUL-62");
  const std::shared_ptr<FileSystem> files = open(path("root"));
  ASSERT_THAT(files->create_exclusive("lock"), is_ok());
  int ready[2];
  int go[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(go), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lock = files->try_lock("lock");
    char byte = lock.ok() ? 'y' : 'n';
    if (::write(ready[1], &byte, 1) == 1) [[maybe_unused]]
      const ssize_t n = ::read(go[0], &byte, 1);
    ::_exit(0);
  }
  char held = 'n';
  ASSERT_EQ(::read(ready[0], &held, 1), 1);
  EXPECT_EQ(held, 'y');
  EXPECT_THAT(files->try_lock("lock"), fails_with(Code::kFailedPrecondition, EAGAIN));
  ASSERT_EQ(::write(go[1], &held, 1), 1);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_THAT(files->try_lock("lock"), is_ok());
  for (const int fd : {ready[0], ready[1], go[0], go[1]}) ::close(fd);
}

TEST_F(PosixFileSystemTest, FileSizeLimitIsAnErrorWithTheBeginningWritten) {
  const std::shared_ptr<FileSystem> files = open(path("root"));
  const pid_t child = ::fork();
  if (child == 0) {
    // In a process of its own: the limit and the ignored signal are the whole process's.
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {10'000, 10'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto file = files->create_exclusive("f");
    const Status status = (*file)->append(as_byte_span(std::string(20'000, 'x')));
    ::_exit(status.sys_errno() == EFBIG && (*file)->stat()->size == 10'000 ? 0 : 1);
  }
  int how = -1;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  EXPECT_EQ(how, 0);
}

}  // namespace
}  // namespace kvkeep
