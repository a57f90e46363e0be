#include "open/directory_name.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace kvkeep {
namespace {

TEST(DirectoryName, APlainNameIsItsOwn) {
  for (const std::string& name :
       std::vector<std::string>{"m", "Qwen3-8B_4bit", "v1.5", "a..b", std::string(200, 'x')}) {
    EXPECT_EQ(*directory_name(name), name);
  }
}

TEST(DirectoryName, EverythingElseIsWrittenInHex) {
  EXPECT_EQ(*directory_name("org/Model-4bit"), "org%2FModel-4bit");
  EXPECT_EQ(*directory_name("100% a\\b"), "100%25%20a%5Cb");
  EXPECT_EQ(*directory_name("é"), "%C3%A9");
  EXPECT_EQ(*directory_name(std::string("\0\xff", 2)), "%00%FF");
}

TEST(DirectoryName, NeverBeginsWithAPoint) {
  EXPECT_EQ(*directory_name("."), "%2E");
  EXPECT_EQ(*directory_name(".."), "%2E.");
  EXPECT_EQ(*directory_name(".kvkeep"), "%2Ekvkeep");
}

TEST(DirectoryName, DifferentTextsHaveDifferentNames) {
  const std::string stem(300, 'x'), slashes(150, '/');
  const std::vector<std::string> texts = {"a/b",
                                          "a%2Fb",
                                          "a%252Fb",
                                          "a_b",
                                          "%2E",
                                          ".",
                                          "a",
                                          "A",
                                          "a ",
                                          stem + "1",
                                          stem + "2",
                                          slashes,
                                          slashes + "/",
                                          stem.substr(1),
                                          stem.substr(0, 201),
                                          *directory_name(stem + "1")};
  std::map<std::string, std::string> seen;
  for (const std::string& text : texts) {
    const std::string name = *directory_name(text);
    EXPECT_LE(name.size(), 200u);
    const auto [at, fresh] = seen.emplace(name, text);
    EXPECT_TRUE(fresh) << name << " is of " << at->second << " and of " << text;
  }
}

}  // namespace
}  // namespace kvkeep
