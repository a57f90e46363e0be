#include "index/eviction_order.h"

#include <gtest/gtest.h>

#include <array>

#include "testing/proves.h"

namespace kvkeep {
namespace {

class EvictionOrderTest : public ::testing::Test {
 protected:
  EvictionOrderTest() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i].hash = &hashes_[i];
      order_.add(nodes_[i]);
    }
  }
  std::string oldest(size_t count, size_t skip = 0) {
    std::string text;
    for (const BlockHash& hash : order_.oldest(count, skip)) text += hash.to_hex() + " ";
    return text;
  }

  std::array<BlockHash, 3> hashes_{*BlockHash::from_hex("01"), *BlockHash::from_hex("02"),
                                   *BlockHash::from_hex("03")};
  std::array<OrderNode, 3> nodes_;
  EvictionOrder order_;
};

TEST_F(EvictionOrderTest, ListsOldestFirst) {
  testing::proves("IDX-08");
  EXPECT_EQ(oldest(2), "01 02 ");
  EXPECT_EQ(oldest(9, 1), "02 03 ");
  EXPECT_EQ(oldest(9, 3), "");
}

TEST_F(EvictionOrderTest, TouchedBecomesNewest) {
  testing::proves("IDX-07");
  order_.touch(nodes_[0]);
  EXPECT_EQ(oldest(9), "02 03 01 ");
  order_.touch(nodes_[0]);
  EXPECT_EQ(oldest(9), "02 03 01 ");
}

TEST_F(EvictionOrderTest, RemovedIsNotListed) {
  order_.remove(nodes_[1]);
  EXPECT_EQ(oldest(9), "01 03 ");
}

}  // namespace
}  // namespace kvkeep
