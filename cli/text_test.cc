#include "cli/text.h"

#include <gtest/gtest.h>

namespace kvkeep::cli {
namespace {

TEST(Age, IsReadInEveryUnit) {
  EXPECT_EQ(*parse_age("90s"), 90);
  EXPECT_EQ(*parse_age("15m"), 900);
  EXPECT_EQ(*parse_age("12h"), 43200);
  EXPECT_EQ(*parse_age("7d"), 604800);
  EXPECT_EQ(*parse_age("2w"), 1209600);
  EXPECT_EQ(*parse_age("1.5h"), 5400);
  EXPECT_EQ(*parse_age("0s"), 0);
}

TEST(Age, AnythingElseIsRefusedWithAnExample) {
  for (const char* bad : {"", "s", "12", "12 h", " 12h", "-1h", "+1h", "1e3s", "infs", "nanh",
                          "12hh", "12y", "99999999999999d", ".5h"}) {
    const auto age = parse_age(bad);
    ASSERT_FALSE(age.ok()) << bad;
    EXPECT_EQ(age.status().code(), Code::kInvalidArgument);
    EXPECT_NE(age.status().message().find("12h"), std::string::npos);
  }
}

TEST(Age, IsShownInTheLargestUnitThatLeavesTwo) {
  EXPECT_EQ(format_age(0), "0s");
  EXPECT_EQ(format_age(-5), "0s");
  EXPECT_EQ(format_age(119.9), "119s");
  EXPECT_EQ(format_age(120), "2m");
  EXPECT_EQ(format_age(7199), "119m");
  EXPECT_EQ(format_age(7200), "2h");
  EXPECT_EQ(format_age(47 * 3600.0), "47h");
  EXPECT_EQ(format_age(30 * 86400.0), "30d");
}

TEST(Time, IsShownInUtc) {
  EXPECT_EQ(format_time(1767225600.25), "2026-01-01T00:00:00Z");
  EXPECT_EQ(format_time(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(format_time(1e300), "?");
}

TEST(Count, OneIsSingular) {
  EXPECT_EQ(count_of(0, "block"), "0 blocks");
  EXPECT_EQ(count_of(1, "block"), "1 block");
  EXPECT_EQ(count_of(812, "block"), "812 blocks");
}

TEST(Count, IsAWholeNumberFromOne) {
  EXPECT_EQ(*parse_count("limit", "12"), 12u);
  for (const char* bad : {"", "0", "-1", "1.5", "x", "99999999999999999999"}) {
    const auto count = parse_count("limit", bad);
    ASSERT_FALSE(count.ok()) << bad;
    EXPECT_NE(count.status().message().find("--limit"), std::string::npos);
  }
}

TEST(Shown, ForeignTextCannotCommandATerminal) {
  EXPECT_EQ(shown("org/モデル-7B é"), "org/モデル-7B é");
  EXPECT_EQ(shown("a\033[2Jb\n\r\tc\x7f"), "a?[2Jb???c?");
  EXPECT_EQ(shown("a\xc2\x9b"
                  "b"),
            "a??b")
      << "a C1 control";
  EXPECT_EQ(shown("a\xff\xc3"), "a??");
  EXPECT_EQ(shown(""), "-");
}

}  // namespace
}  // namespace kvkeep::cli
