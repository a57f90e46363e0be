#include "io/relative_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/status_matchers.h"

namespace kvkeep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(RelativePath, IsCutAtSlashes) {
  EXPECT_THAT(*split_path(""), IsEmpty());
  EXPECT_THAT(*split_path("a"), ElementsAre("a"));
  EXPECT_THAT(*split_path(".kvkeep/owner-1/..x"), ElementsAre(".kvkeep", "owner-1", "..x"));
}

TEST(RelativePath, OtherFormsAreInvalid) {
  for (const std::string& path :
       std::vector<std::string>{"/", "/a", "a/", "a//b", ".", "a/.", "..", "../a", "a/../b",
                                std::string("\0", 1), std::string("a/b\0", 4)}) {
    EXPECT_THAT(split_path(path), testing::fails_with(Code::kInvalidArgument, 0)) << path;
  }
}

TEST(RelativePath, ParentIsWhatStandsBeforeTheLastSlash) {
  EXPECT_EQ(parent_of("a/b/c"), "a/b");
  EXPECT_EQ(parent_of("a"), "");
  EXPECT_EQ(parent_of(""), "");
}

}  // namespace
}  // namespace kvkeep
