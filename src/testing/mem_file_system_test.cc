#include "testing/mem_file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "testing/manual_clock.h"
#include "testing/proves.h"
#include "testing/status_matchers.h"

namespace kvkeep::testing {
namespace {

using ::testing::ElementsAre;

std::unique_ptr<WriteFile> create(FileSystem& fs, std::string_view path) {
  Result<std::unique_ptr<WriteFile>> file = fs.create_exclusive(path);
  EXPECT_THAT(file, is_ok());
  return *std::move(file);
}

TEST(MemFileSystem, AllocationUnitIsOneByteUnlessSaidOtherwise) {
  proves("RUL-05");
  MemFileSystem fs;
  fs.write_all("a/f", "12345");
  EXPECT_EQ(fs.allocated_bytes(), 5u);
  EXPECT_EQ(fs.stat("a/f")->allocated, 5u);
  EXPECT_EQ(fs.space()->block_bytes, 1u);
}

TEST(MemFileSystem, ChargesFilesInUnitsAndDirectoriesAsTold) {
  MemFileSystem fs({.block_bytes = 512, .directory_bytes = 4096});
  EXPECT_EQ(fs.allocated_bytes(), 4096u);
  ASSERT_THAT(fs.create_dirs("a/b"), is_ok());
  fs.write_all("a/f", std::string(513, 'x'));
  EXPECT_EQ(fs.allocated_bytes(), 3 * 4096u + 1024u);
  EXPECT_EQ(fs.stat("a")->allocated, 4096u);
  fs.truncate("a/f", 512);
  EXPECT_EQ(fs.allocated_bytes(), 3 * 4096u + 512u);
  fs.remove_tree("a");
  EXPECT_EQ(fs.allocated_bytes(), 4096u);
}

TEST(MemFileSystem, UnlinkedFileIsChargedUntilItIsClosed) {
  MemFileSystem fs;
  auto writer = create(fs, "f");
  ASSERT_THAT(writer->append(as_byte_span("12345")), is_ok());
  auto reader = *fs.open_read("f");
  ASSERT_THAT(fs.unlink("f"), is_ok());
  ASSERT_THAT(writer->append(as_byte_span("67890")), is_ok());
  writer.reset();
  EXPECT_EQ(fs.allocated_bytes(), 10u);
  reader.reset();
  EXPECT_EQ(fs.allocated_bytes(), 0u);
}

TEST(MemFileSystem, ReplacedFileIsNoLongerCharged) {
  MemFileSystem fs;
  fs.write_all("a", "12345");
  fs.write_all("b", "1");
  ASSERT_THAT(fs.rename("b", "a"), is_ok());
  EXPECT_EQ(fs.allocated_bytes(), 1u);
  fs.write_all("a", "123");
  EXPECT_EQ(fs.allocated_bytes(), 3u);
}

TEST(MemFileSystem, FullDiskTakesTheBeginningOfAnAppend) {
  MemFileSystem fs({.block_bytes = 4, .capacity = 10});
  const auto no_space = fails_with(Code::kUnavailable, ENOSPC);
  auto file = create(fs, "f");
  EXPECT_THAT(file->append(as_byte_span("123456789")), no_space);
  EXPECT_EQ(fs.read_all("f"), "12345678");
  EXPECT_EQ(fs.space()->free, 2u);
  EXPECT_THAT(file->append(as_byte_span("9")), no_space);
  ASSERT_THAT(file->truncate(1), is_ok());
  EXPECT_THAT(file->append(as_byte_span("2345678")), is_ok());
  fs.set_capacity(0);
  EXPECT_THAT(file->append(as_byte_span("9")), is_ok());
}

TEST(MemFileSystem, FullDiskTakesNoDirectory) {
  MemFileSystem fs({.capacity = 150, .directory_bytes = 100});
  EXPECT_THAT(fs.create_dirs("a"), fails_with(Code::kUnavailable, ENOSPC));
  EXPECT_EQ(fs.allocated_bytes(), 100u);
}

TEST(MemFileSystem, TimesComeFromTheClock) {
  const auto clock = std::make_shared<ManualClock>();
  MemFileSystem fs({.clock = clock});
  ASSERT_THAT(fs.create_dirs("a"), is_ok());
  auto file = create(fs, "a/f");
  EXPECT_EQ(fs.stat("a/f")->mtime, 1767225600.25);
  clock->advance(std::chrono::seconds(5));
  ASSERT_THAT(file->append(as_byte_span("x")), is_ok());
  EXPECT_EQ(fs.stat("a/f")->mtime, 1767225605.25);
  EXPECT_EQ(fs.stat("a")->mtime, 1767225600.25);
  ASSERT_THAT(fs.rename("a/f", "a/g"), is_ok());
  EXPECT_EQ(fs.stat("a")->mtime, 1767225605.25);
}

TEST(MemFileSystem, LinksAreNotFollowed) {
  MemFileSystem fs;
  fs.make_link("dir");
  const auto is_link = fails_with(Code::kUnavailable, ELOOP);
  EXPECT_THAT(fs.open_read("dir"), is_link);
  EXPECT_THAT(fs.open_read("dir/f"), is_link);
  EXPECT_THAT(fs.create_dirs("dir/x"), is_link);
  EXPECT_THAT(fs.create_exclusive("dir"), fails_with(Code::kUnavailable, EEXIST));
  EXPECT_EQ(fs.stat("dir")->kind, FileKind::kLink);
  EXPECT_THAT(fs.unlink("dir"), is_ok());
}

TEST(MemFileSystem, ObserverSeesEachChangeWhenItIsDone) {
  MemFileSystem fs({.capacity = 4});
  std::vector<std::string> seen;
  fs.on_operation([&](const Operation& operation) {
    seen.push_back(std::string(name_of(operation.op)) + " " + operation.path + " " +
                   std::to_string(fs.allocated_bytes()));
  });
  ASSERT_THAT(fs.create_dirs("a"), is_ok());
  auto file = create(fs, "a/f");
  ASSERT_THAT(file->append(as_byte_span("12")), is_ok());
  ASSERT_FALSE(file->append(as_byte_span("345")).ok());
  ASSERT_THAT(file->truncate(1), is_ok());
  ASSERT_THAT(fs.rename("a/f", "g"), is_ok());
  ASSERT_FALSE(fs.unlink("none").ok());
  ASSERT_TRUE(fs.stat("g").ok());
  file.reset();
  ASSERT_THAT(fs.unlink("g"), is_ok());
  EXPECT_THAT(seen, ElementsAre("create_dirs a 0", "create_exclusive a/f 0", "append a/f 2",
                                "append a/f 4", "truncate a/f 1", "rename a/f 1", "unlink g 0"));
}

TEST(MemFileSystem, VerbsPlayTheHandFromOutside) {
  MemFileSystem fs;
  int observed = 0;
  fs.on_operation([&](const Operation&) { ++observed; });
  fs.write_all("a/b/f", "abc");
  fs.flip_bit("a/b/f", 9);
  EXPECT_EQ(fs.read_all("a/b/f"), "a`c");
  EXPECT_EQ(fs.read_all("a/b"), std::nullopt);
  EXPECT_EQ(fs.read_all("none"), std::nullopt);
  fs.write_all("a/c", "");
  EXPECT_THAT(fs.paths(), ElementsAre("a/b/f", "a/c"));
  fs.remove_tree("a/b");
  EXPECT_THAT(fs.paths(), ElementsAre("a/c"));
  EXPECT_EQ(observed, 0);
}

TEST(MemFileSystem, CloneIsApartAndForgetsWhoHeldWhat) {
  MemFileSystem fs({.block_bytes = 8, .directory_bytes = 16});
  fs.write_all("a/f", "old");
  ASSERT_THAT(fs.set_mtime("a/f", 5), is_ok());
  const auto lock = fs.try_lock("a/f");
  const auto open = create(fs, "temp");
  ASSERT_THAT(open->append(as_byte_span("x")), is_ok());
  ASSERT_THAT(fs.unlink("temp"), is_ok());
  const auto copy = fs.clone();
  fs.flip_bit("a/f", 0);
  EXPECT_EQ(copy->read_all("a/f"), "old");
  EXPECT_EQ(copy->stat("a/f")->mtime, 5);
  EXPECT_EQ(copy->allocated_bytes(), 2 * 16u + 8u);
  EXPECT_THAT(copy->try_lock("a/f"), is_ok());
}

TEST(MemFileSystem, OpenFilesOutliveIt) {
  auto fs = std::make_unique<MemFileSystem>();
  fs->write_all("f", "x");
  const auto writer = create(*fs, "g");
  const auto reader = *fs->open_read("f");
  const auto lock = fs->try_lock("f");
  fs.reset();
  EXPECT_THAT(writer->append(as_byte_span("y")), is_ok());
  EXPECT_EQ(reader->stat()->size, 1u);
}

}  // namespace
}  // namespace kvkeep::testing
