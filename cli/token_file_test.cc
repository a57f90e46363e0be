#include "cli/token_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "testing/temp_dir.h"

namespace kvkeep::cli {
namespace {

TEST(TokenFile, AnArrayOfTokenIdsIsRead) {
  EXPECT_EQ(*parse_tokens(" [1, 0,\n4294967295] "), (std::vector<uint32_t>{1, 0, 4294967295}));
  EXPECT_TRUE(parse_tokens("[]")->empty());
}

TEST(TokenFile, AWrongTokenIsNamedByItsIndex) {
  for (const char* token : {"-1", "4294967296", "1.0", "\"1\"", "null", "true", "[1]"}) {
    const auto tokens = parse_tokens(std::string("[5, ") + token + ", -7]");
    EXPECT_EQ(tokens.status().code(), Code::kInvalidArgument) << token;
    EXPECT_EQ(tokens.status().message().rfind("tokens[1]: ", 0), 0u) << tokens.status().message();
  }
  const std::string longest =
      parse_tokens("[\"" + std::string(9000, 'x') + "\"]").status().message();
  EXPECT_LT(longest.size(), 200u);
}

TEST(TokenFile, WhatIsNoArrayIsRefused) {
  for (const char* text : {"", "{}", "7", "[1, 2", "[1] 2", "1 2 3"}) {
    EXPECT_EQ(parse_tokens(text).status().code(), Code::kInvalidArgument) << text;
  }
}

TEST(TokenFile, AFileThatIsNotThereOrCannotBeReadIsTold) {
  const testing::TempDir dir;
  const std::string file = (dir.path() / "tokens.json").string();
  EXPECT_EQ(read_tokens(file).status().code(), Code::kNotFound);
  std::ofstream(file) << "[3, 4]";
  EXPECT_EQ(*read_tokens(file), (std::vector<uint32_t>{3, 4}));
}

}  // namespace
}  // namespace kvkeep::cli
