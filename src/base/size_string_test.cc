#include "kvkeep/size_string.h"

#include <gtest/gtest.h>

#include "testing/proves.h"

namespace kvkeep {
namespace {

void expect_sizes(std::initializer_list<std::pair<const char*, uint64_t>> cases) {
  for (const auto& [text, bytes] : cases) {
    const auto size = parse_size(text);
    ASSERT_TRUE(size.ok()) << text;
    EXPECT_EQ(*size, bytes) << text;
  }
}

TEST(ParseSize, PlainIntegersAreBytes) {
  testing::proves("SIZE-01");
  expect_sizes({{"1024", 1024}, {"0", 0}, {"9223372036854775807", 9223372036854775807u}});
}

TEST(ParseSize, UnitsArePowersOf1024InAnyCase) {
  testing::proves("SIZE-02", "SIZE-03", "SIZE-04", "SIZE-05");
  expect_sizes({{"1KB", 1024}, {"10kb", 10240}, {"1.5KB", 1536}, {"1MB", 1048576}});
  expect_sizes({{"100mb", 104857600}, {"1GB", 1073741824}, {"16gb", 17179869184}});
  expect_sizes(
      {{"0.5GB", 536870912}, {"1TB", 1099511627776}, {"2tb", 2199023255552}, {"50G", 53687091200}});
}

TEST(ParseSize, SpaceAroundAndBeforeTheUnitIsIgnored) {
  testing::proves("SIZE-06");
  expect_sizes({{" 100MB ", 104857600}, {"10 b", 10}, {"1.5 TB", 1649267441664}});
}

TEST(ParseSize, BytesAreTruncatedTowardZero) {
  testing::proves("SIZE-08");
  expect_sizes({{"10B", 10}, {"1.9B", 1}, {"1e3B", 1000}});
}

TEST(ParseSize, AnythingElseIsRefusedWithItsText) {
  testing::proves("SIZE-07", "SIZE-09", "SIZE-10", "DEF-67");
  for (const char* text :
       {"invalid", "MB100", "", "MB", "1KiB", "0x10", "1.5", "-5MB", "-5", "infB", "nanB", "9e30TB",
        "1_000", "1_000MB", "\xd9\xa1MB", "9223372036854775808", "1 2MB", "+5"}) {
    const auto size = parse_size(text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_EQ(size.status().code(), Code::kInvalidArgument);
    EXPECT_NE(size.status().message().find(text), std::string::npos) << text;
  }
}

TEST(ParseSize, BinaryUnitNamesAreAnsweredWithTheAcceptedForm) {
  EXPECT_NE(parse_size("50GiB").status().message().find("write 50GB"), std::string::npos);
}

TEST(FormatBytes, UsesTheLargestFittingUnit) {
  testing::proves("SIZE-11", "RUL-69");
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.50KB");
  EXPECT_EQ(format_bytes(1048576), "1.00MB");
  EXPECT_EQ(format_bytes(10ull << 30), "10.00GB");
  EXPECT_EQ(format_bytes(3ull << 40), "3.00TB");
  EXPECT_EQ(format_bytes(9223372036854775807u), "8388608.00TB") << "rounded, and no size any more";
}

}  // namespace
}  // namespace kvkeep
