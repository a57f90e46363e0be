#include "index/departed_keys.h"

#include <gtest/gtest.h>

#include "testing/proves.h"

namespace kvkeep {
namespace {

BlockHash key(uint32_t n) { return *BlockHash::from_bytes(std::as_bytes(std::span(&n, 1))); }

TEST(DepartedKeys, RemembersWhyUntilForgotten) {
  testing::proves("RUL-32");
  DepartedKeys departed;
  EXPECT_EQ(departed.why(key(1)), MissReason::kAbsent);
  departed.remember(key(1), MissReason::kEvicted);
  departed.remember(key(2), MissReason::kDeleted);
  EXPECT_EQ(departed.why(key(1)), MissReason::kEvicted);
  EXPECT_EQ(departed.why(key(2)), MissReason::kDeleted);
  departed.forget(key(1));
  EXPECT_EQ(departed.why(key(1)), MissReason::kAbsent);
}

TEST(DepartedKeys, IsBoundedAndNeverInventsAReason) {
  DepartedKeys departed(64);
  for (uint32_t n = 0; n < 10'000; ++n) departed.remember(key(n), MissReason::kEvicted);
  size_t remembered = 0;
  for (uint32_t n = 0; n < 10'000; ++n) remembered += departed.why(key(n)) == MissReason::kEvicted;
  EXPECT_LE(remembered, 64u);
  EXPECT_GT(remembered, 0u);
  for (uint32_t n = 10'000; n < 20'000; ++n) EXPECT_EQ(departed.why(key(n)), MissReason::kAbsent);
}

}  // namespace
}  // namespace kvkeep
