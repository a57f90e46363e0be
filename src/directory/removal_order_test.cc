#include "directory/removal_order.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "testing/block_builder.h"

namespace kvkeep {
namespace {

using testing::key_of;

RemovalCandidate block(uint64_t k, double used, std::optional<uint64_t> parent = {}) {
  RemovalCandidate out{key_of(k), std::nullopt, used, 10};
  if (parent) out.parent = key_of(*parent);
  return out;
}

class RemovalOrderTest : public ::testing::Test {
 protected:
  // The numbers of the blocks at these positions.
  static std::vector<uint64_t> numbers(const RemovalOrder& order, const std::vector<size_t>& at) {
    std::vector<uint64_t> out;
    for (const size_t i : at) {
      for (uint64_t k = 0; k < 100; ++k) {
        if (order.blocks()[i].hash == key_of(k)) out.push_back(k);
      }
    }
    return out;
  }
  static std::vector<uint64_t> all(std::vector<RemovalCandidate> blocks) {
    const RemovalOrder order(std::move(blocks));
    return numbers(order, order.choose([](const auto&, uint64_t) { return true; }));
  }
};

TEST_F(RemovalOrderTest, TheLeastRecentlyUsedGoesFirst) {
  EXPECT_EQ(all({block(1, 30), block(2, 10), block(3, 20)}), (std::vector<uint64_t>{2, 3, 1}));
}

TEST_F(RemovalOrderTest, AParentGoesAfterItsChildrenHoweverOldItIs) {
  EXPECT_EQ(all({block(1, 1), block(2, 50, 1), block(3, 60, 2), block(4, 40)}),
            (std::vector<uint64_t>{4, 3, 2, 1}));
  EXPECT_EQ(all({block(1, 90), block(2, 5, 1), block(3, 6, 1), block(4, 40)}),
            (std::vector<uint64_t>{2, 3, 4, 1}));
}

TEST_F(RemovalOrderTest, BlocksOfEqualAgeKeepChildrenInFront) {
  EXPECT_EQ(all({block(1, 7), block(2, 7, 1), block(3, 7, 2), block(4, 7, 3)}),
            (std::vector<uint64_t>{4, 3, 2, 1}));
}

TEST_F(RemovalOrderTest, ACycleOfParentsLosesOneLinkAndNoBlock) {
  auto gone = all({block(1, 1, 3), block(2, 2, 1), block(3, 3, 2), block(4, 4, 4)});
  std::sort(gone.begin(), gone.end());
  EXPECT_EQ(gone, (std::vector<uint64_t>{1, 2, 3, 4}));
}

TEST_F(RemovalOrderTest, AParentOfABlockThatStaysStays) {
  const RemovalOrder order({block(1, 1), block(2, 2, 1), block(3, 90, 2), block(4, 4)});
  EXPECT_EQ(numbers(order, order.choose([](const RemovalCandidate& b, uint64_t) {
              return b.last_access < 50;
            })),
            std::vector<uint64_t>{4});
}

TEST_F(RemovalOrderTest, TheChoiceIsToldTheBytesSoFar) {
  const RemovalOrder order({block(1, 1), block(2, 2), block(3, 3)});
  EXPECT_EQ(numbers(order, order.choose([](const auto&, uint64_t bytes) { return bytes < 15; })),
            (std::vector<uint64_t>{1, 2}));
}

TEST_F(RemovalOrderTest, DescendantsGoWithTheirAncestorLeavesFirst) {
  const RemovalOrder order(
      {block(1, 9), block(2, 8, 1), block(3, 7, 2), block(4, 6, 1), block(5, 5)});
  EXPECT_EQ(numbers(order, order.with_descendants(
                               [](const RemovalCandidate& b) { return b.hash == key_of(2); })),
            (std::vector<uint64_t>{3, 2}));
  EXPECT_EQ(numbers(order, order.with_descendants(
                               [](const RemovalCandidate& b) { return b.hash == key_of(1); })),
            (std::vector<uint64_t>{4, 3, 2, 1}));
}

TEST_F(RemovalOrderTest, ALongChainIsNoProblem) {
  std::vector<RemovalCandidate> chain{block(0, 0)};
  for (uint64_t k = 1; k < 50'000; ++k) chain.push_back(block(k, 1, k - 1));
  const RemovalOrder order(std::move(chain));
  const auto gone = order.choose([](const auto&, uint64_t) { return true; });
  ASSERT_EQ(gone.size(), 50'000u);
  EXPECT_EQ(gone.front(), 49'999u);
  EXPECT_EQ(gone.back(), 0u);
}

}  // namespace
}  // namespace kvkeep
