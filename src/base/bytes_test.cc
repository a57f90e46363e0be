#include "base/bytes.h"

#include <gtest/gtest.h>

namespace kvkeep {
namespace {

TEST(Bytes, RoundUpReachesTheNextMultiple) {
  EXPECT_EQ(round_up(0, 4096), 0u);
  EXPECT_EQ(round_up(1, 4096), 4096u);
  EXPECT_EQ(round_up(4096, 4096), 4096u);
  EXPECT_EQ(round_up(7, 1), 7u);
}

TEST(Bytes, Utf8IsCheckedStrictly) {
  for (const char* good :
       {"", "abc", "\xc3\xa9", "\xe3\x83\xa2", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(is_valid_utf8(good)) << good;
  }
  for (const char* bad : {"\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "a\xe3\x83"}) {
    EXPECT_FALSE(is_valid_utf8(bad)) << bad;
  }
}

}  // namespace
}  // namespace kvkeep
