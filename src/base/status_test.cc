#include "kvkeep/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "testing/proves.h"

namespace kvkeep {
namespace {

TEST(Status, CarriesCodeMessageErrnoAndReason) {
  const Status io = Status::from_errno(Code::kUnavailable, "read a/ab: Input/output error", EIO);
  EXPECT_EQ(io.sys_errno(), EIO);
  const Status miss(Code::kNotFound, MissReason::kEvicted, "block ab");
  EXPECT_EQ(miss.miss_reason(), MissReason::kEvicted);
  EXPECT_FALSE(miss.refusal().has_value());
  EXPECT_EQ(miss.to_string(), "not_found: block ab");
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(Status().to_string(), "ok");
}

TEST(Status, TheTenCodesHaveNamesOfTheirOwn) {
  testing::proves("RUL-43");
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(Code::kInternal); ++code) {
    names.insert(name_of(static_cast<Code>(code)));
  }
  EXPECT_EQ(names.size(), 10u);
  EXPECT_EQ(names.count("unknown"), 0u);
}

Result<int> half(int n) {
  if (n % 2 != 0) return Status(Code::kInvalidArgument, "odd");
  return n / 2;
}
Result<int> quarter(int n) {
  KVKEEP_TRY_ASSIGN(const int h, half(n));
  return half(h);
}

TEST(Result, TryAssignLeavesWithTheError) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(6).status().message(), "odd");
  EXPECT_EQ(quarter(5).status().code(), Code::kInvalidArgument);
}

TEST(Reason, NamesAreUniqueAmongMissesAndAmongRefusals) {
  std::set<std::string_view> misses, refusals;
  for (size_t i = 0; i < kMissReasonCount; ++i) misses.insert(name_of(static_cast<MissReason>(i)));
  for (size_t i = 0; i < kRefusalCount; ++i) refusals.insert(name_of(static_cast<Refusal>(i)));
  EXPECT_EQ(misses.size(), kMissReasonCount);
  EXPECT_EQ(refusals.size(), kRefusalCount);
}

}  // namespace
}  // namespace kvkeep
