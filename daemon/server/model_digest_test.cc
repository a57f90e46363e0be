#include "daemon/server/model_digest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "testing/temp_dir.h"

namespace kvkeep::daemon {
namespace {

using Paths = std::vector<std::filesystem::path>;

const std::string kDigest(64, 'a');

class ModelDigest : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& content) {
    const std::filesystem::path path = dir_.path() / name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  std::filesystem::path book_file() const { return dir_.path() / "sub" / "digests.json"; }
  size_t files_beside_book() const {
    const std::filesystem::directory_iterator entries(book_file().parent_path());
    return static_cast<size_t>(std::distance(begin(entries), end(entries)));
  }

  testing::TempDir dir_;
};

TEST(ModelParts, AFileOfSeveralNamesThemAll) {
  const Paths all{"/m/big-00001-of-00003.gguf", "/m/big-00002-of-00003.gguf",
                  "/m/big-00003-of-00003.gguf"};
  EXPECT_EQ(model_parts("/m/big-00001-of-00003.gguf"), all);
  EXPECT_EQ(model_parts("/m/big-00003-of-00003.gguf"), all);
  EXPECT_EQ(model_parts("a-00001-of-00001.gguf"), Paths{"a-00001-of-00001.gguf"});
}

TEST(ModelParts, AnyOtherNameIsItself) {
  for (const char* name : {"m.gguf", "/m/x-1-of-3.gguf", "x-00000-of-00003.gguf", "", "/",
                           "x-00004-of-00003.gguf", "x-00001-of-00003.bin", "dir/"}) {
    EXPECT_EQ(model_parts(name), Paths{name}) << name;
  }
}

TEST_F(ModelDigest, IsOfSizesAndContents) {
  const auto a = write("a", "abc");
  const auto b = write("b", "");
  // printf '\3\0\0\0\0\0\0\0abc\0\0\0\0\0\0\0\0' | sha256sum
  EXPECT_EQ(*digest_of_files({a, b}),
            "3e2f8940c3a0e0fd6f6e07bbf07f015dd7c147431e5fa14bf3f225d782641540");
  EXPECT_NE(*digest_of_files({b, a}), *digest_of_files({a, b}));
  EXPECT_NE(*digest_of_files({write("c", "ab"), write("d", "c")}),
            *digest_of_files({write("e", "a"), write("f", "bc")}));
}

TEST_F(ModelDigest, DoesNotDependOnNames) {
  EXPECT_EQ(*digest_of_files({write("a", "abc")}), *digest_of_files({write("b", "abc")}));
}

TEST_F(ModelDigest, TellsHowFarItIs) {
  const auto file = write("a", std::string(9 << 20, 'x'));
  std::vector<uint64_t> steps;
  const auto digest = digest_of_files({file, file}, [&](uint64_t done, uint64_t of) {
    EXPECT_EQ(of, uint64_t{18} << 20);
    steps.push_back(done);
    return true;
  });
  ASSERT_TRUE(digest.ok());
  EXPECT_GE(steps.size(), 4u);
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
  EXPECT_EQ(steps.back(), uint64_t{18} << 20);
}

TEST_F(ModelDigest, StopsWhenItIsTold) {
  const auto digest =
      digest_of_files({write("a", "abc")}, [](uint64_t, uint64_t) { return false; });
  EXPECT_EQ(digest.status().code(), Code::kUnavailable);
}

TEST_F(ModelDigest, AFileThatChangesMeanwhileIsAnError) {
  const auto file = write("a", std::string(9 << 20, 'x'));
  for (const bool shorter : {true, false}) {
    const auto digest = digest_of_files({file}, [&](uint64_t, uint64_t) {
      std::filesystem::resize_file(file, shorter ? 100 : 20 << 20);
      return true;
    });
    EXPECT_EQ(digest.status().code(), Code::kFailedPrecondition) << shorter;
    EXPECT_THAT(digest.status().message(), ::testing::HasSubstr("changed"));
  }
}

TEST_F(ModelDigest, WhatIsNoFileIsTold) {
  EXPECT_EQ(digest_of_files({dir_.path() / "none"}).status().code(), Code::kNotFound);
  EXPECT_EQ(digest_of_files({dir_.path()}).status().code(), Code::kInvalidArgument);
}

TEST_F(ModelDigest, ABookRemembersWhatWasNoted) {
  const Paths parts{write("a", "abc"), write("b", "x")};
  DigestBook book(book_file());
  EXPECT_FALSE(book.find(parts));
  book.note(parts, kDigest);
  EXPECT_EQ(book.find(parts), kDigest);
  EXPECT_EQ(DigestBook(book_file()).find(parts), kDigest);
  EXPECT_FALSE(book.find({parts[0]}));
  EXPECT_FALSE(book.find({parts[1], parts[0]}));
  EXPECT_FALSE(book.find({}));
  EXPECT_FALSE(book.find({dir_.path() / "none"}));
}

TEST_F(ModelDigest, ABookIsForItsOwnerAndLeavesNothingBeside) {
  DigestBook book(book_file());
  book.note({write("a", "abc")}, kDigest);
  struct stat found {};
  ASSERT_EQ(::stat(book_file().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
  EXPECT_EQ(files_beside_book(), 1u);
}

TEST_F(ModelDigest, AFileThatChangedIsNotFoundAndNotedAnew) {
  const auto file = write("a", "abc");
  DigestBook book(book_file());
  book.note({file}, kDigest);
  write("a", "abcd");
  EXPECT_FALSE(book.find({file}));
  const std::string other(64, 'b');
  book.note({file}, other);
  EXPECT_EQ(book.find({file}), other);
  std::ifstream in(book_file());
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(text.find(kDigest), std::string::npos);
}

TEST_F(ModelDigest, ALinkIsItsFile) {
  const auto file = write("a", "abc");
  std::filesystem::create_symlink(file, dir_.path() / "link");
  DigestBook book(book_file());
  book.note({file}, kDigest);
  EXPECT_EQ(book.find({dir_.path() / "link"}), kDigest);
}

TEST_F(ModelDigest, ADamagedBookIsAnEmptyOne) {
  const auto file = write("a", "abc");
  std::filesystem::create_directories(book_file().parent_path());
  for (const char* text :
       {"", "{", "[]", "7", "{\"version\":1}", "{\"version\":2,\"digests\":[]}",
        "{\"version\":1,\"digests\":7}", "{\"version\":1,\"digests\":[7,{}]}",
        "{\"version\":1,\"digests\":[{\"files\":7,\"digest\":8}]}",
        "{\"version\":1,\"digests\":[{\"files\":[{\"path\":7}],\"digest\":\"\"}]}",
        "{\"version\":\"1\",\"digests\":{\"a\":{\"files\":{}}}}"}) {
    std::ofstream(book_file()) << text;
    DigestBook book(book_file());
    EXPECT_FALSE(book.find({file})) << text;
    book.note({file}, kDigest);
    EXPECT_EQ(DigestBook(book_file()).find({file}), kDigest) << text;
  }
}

TEST_F(ModelDigest, AWrongDigestIsNotNoted) {
  const auto file = write("a", "abc");
  DigestBook book(book_file());
  book.note({file}, "abc");
  EXPECT_FALSE(book.find({file}));
}

TEST_F(ModelDigest, WhatAnotherProcessNotedStays) {
  const auto a = write("a", "abc");
  const auto b = write("b", "abc");
  DigestBook first(book_file());
  DigestBook second(book_file());
  first.note({a}, kDigest);
  second.note({b}, kDigest);
  const DigestBook book(book_file());
  EXPECT_TRUE(book.find({a}));
  EXPECT_TRUE(book.find({b}));
}

TEST_F(ModelDigest, TheOldestLeaveAFullBook) {
  const auto oldest = write("a", "abc");
  const auto second = write("b", "abc");
  DigestBook(book_file()).note({oldest}, kDigest);
  DigestBook(book_file()).note({second}, kDigest);
  nlohmann::json book = nlohmann::json::parse(std::ifstream(book_file()));
  for (int i = 2; i < 256; ++i) {
    nlohmann::json other = book["digests"][0];
    other["files"][0]["path"] = "/m" + std::to_string(i);
    book["digests"].push_back(std::move(other));
  }
  std::ofstream(book_file()) << book;
  EXPECT_TRUE(DigestBook(book_file()).find({oldest}));

  const auto newest = write("c", "abc");
  DigestBook(book_file()).note({newest}, kDigest);
  const DigestBook full(book_file());
  EXPECT_FALSE(full.find({oldest}));
  EXPECT_TRUE(full.find({second}));
  EXPECT_TRUE(full.find({newest}));
}

TEST_F(ModelDigest, ABookThatCannotBeWrittenStillRemembers) {
  const auto file = write("a", "abc");
  DigestBook book(file / "below" / "a-file");
  book.note({file}, kDigest);
  EXPECT_EQ(book.find({file}), kDigest);
}

}  // namespace
}  // namespace kvkeep::daemon
