#include "daemon/report/words.h"

#include <gtest/gtest.h>

#include <limits>

namespace kvkeep::daemon {
namespace {

TEST(Words, CountsHaveCommas) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(9812), "9,812");
  EXPECT_EQ(format_count(123456), "123,456");
  EXPECT_EQ(format_count(18446744073709551615u), "18,446,744,073,709,551,615");
}

TEST(Words, DurationsHaveTheFiguresThatMatter) {
  const struct {
    double seconds;
    const char* text;
  } kCases[] = {{0, "0ms"},          {-1, "0ms"},
                {0.0004, "0.4ms"},   {0.0085, "8.5ms"},
                {0.00996, "10ms"},   {0.31, "310ms"},
                {0.9996, "1.0s"},    {2.14, "2.1s"},
                {9.96, "10s"},       {21, "21s"},
                {119.4, "119s"},     {119.6, "2 min"},
                {12 * 60, "12 min"}, {119.4 * 60, "119 min"},
                {119.6 * 60, "2 h"}, {3 * 3600, "3 h"}};
  for (const auto& c : kCases) EXPECT_EQ(format_duration(c.seconds), c.text) << c.seconds;
  EXPECT_EQ(format_duration(std::numeric_limits<double>::infinity()), "0ms");
  EXPECT_EQ(format_duration(std::numeric_limits<double>::quiet_NaN()), "0ms");
}

}  // namespace
}  // namespace kvkeep::daemon
