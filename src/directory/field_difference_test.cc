#include "directory/field_difference.h"

#include <gtest/gtest.h>

namespace kvkeep {
namespace {

std::string text(const Fields& stored, const Fields& asked) {
  return difference_text(differences(stored, asked));
}

TEST(FieldDifference, OnlyFieldsThatDifferAreTold) {
  EXPECT_EQ(text({{"build", "b7"}, {"model", "m"}}, {{"build", "b8"}, {"model", "m"}}),
            "stored for build 'b7'; asked for build 'b8'");
  EXPECT_EQ(text({{"build", "b7"}}, {{"adapter", ""}, {"build", "b8"}}),
            "stored without adapter and for build 'b7'; asked for adapter '' and for build 'b8'");
  EXPECT_EQ(text({}, {{"salt", "hush"}}), "stored without salt; asked with a salt");
}

TEST(FieldDifference, ASaltIsNeverShown) {
  EXPECT_EQ(text({{"salt", "salted"}}, {{"salt", "hush"}}), "stored with another salt");
  const auto found = differences({{"a", "1"}, {"salt", "salted"}}, {{"a", "2"}, {"salt", "hush"}});
  ASSERT_EQ(found.size(), 1u) << "whether the salts differ as well cannot be known";
  EXPECT_EQ(found[0].name, "a");
  EXPECT_EQ(*differences({}, {{"salt", "hush"}}).at(0).asked, "salted");
}

}  // namespace
}  // namespace kvkeep
