#include "index/eviction_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "testing/proves.h"

namespace kvkeep {
namespace {

using testing::proves;

BlockHash key(unsigned n) {
  const char hex[] = {"0123456789abcdef"[n / 16], "0123456789abcdef"[n % 16]};
  return *BlockHash::from_hex({hex, 2});
}

// Nodes 1, 2, 3, …: used at that second, no parents.
class EvictionOrderTest : public ::testing::Test {
 protected:
  struct Node {
    BlockHash hash;
    OrderNode node;
  };

  EvictionOrderTest() { fill(order_, 3); }

  void fill(EvictionOrder& order, unsigned count) {
    for (unsigned n = 1; n <= count; ++n) add(order, n, n);
  }
  OrderNode& node(unsigned n) { return nodes_.at(n).node; }
  void add(EvictionOrder& order, unsigned n, double used_at) {
    Node& added = nodes_.try_emplace(n, Node{key(n), {}}).first->second;
    added.node = {};
    added.node.hash = &added.hash;
    order.add(added.node, used_at);
  }
  void add_child(unsigned n, unsigned parent, double used_at) {
    add(order_, n, used_at);
    order_.set_parent(node(n), key(parent));
  }
  static std::string oldest(const EvictionOrder& order, size_t count = 99, size_t skip = 0) {
    std::string text;
    for (const BlockHash& hash : order.oldest(count, skip)) text += hash.to_hex() + " ";
    return text;
  }
  // What eviction takes, one after the other.
  std::string evict_all() {
    std::string text;
    for (auto next = order_.oldest(1); !next.empty(); next = order_.oldest(1)) {
      text += next[0].to_hex() + " ";
      for (auto& entry : nodes_) {
        if (entry.second.hash == next[0]) order_.remove(entry.second.node);
      }
    }
    return text;
  }

  std::map<unsigned, Node> nodes_;
  EvictionOrder order_;
};

TEST_F(EvictionOrderTest, ListsOldestFirst) {
  proves("IDX-08");
  EXPECT_EQ(oldest(order_, 2), "01 02 ");
  EXPECT_EQ(oldest(order_, 9, 1), "02 03 ");
  EXPECT_EQ(oldest(order_, 9, 3), "");
}

TEST_F(EvictionOrderTest, WhatIsPutFirstGoesBeforeAllOthersUntilItIsUsed) {
  proves("RUL-13");
  order_.put_first(node(3));
  EXPECT_EQ(oldest(order_), "03 01 02 ");
  order_.put_first(node(2));
  EXPECT_EQ(oldest(order_), "02 03 01 ");
  order_.set_rank(node(2), 2);  // It stays there whatever else becomes of it.
  EXPECT_EQ(oldest(order_), "02 03 01 ");
  order_.touch(node(3), 4);
  EXPECT_EQ(oldest(order_), "02 01 03 ");
}

TEST_F(EvictionOrderTest, PutFirstStillGoesAfterItsChildren) {
  add_child(4, 3, 4);
  add_child(5, 4, 5);
  for (unsigned n : {3, 4, 5}) order_.put_first(node(n));
  EXPECT_EQ(evict_all(), "05 04 03 01 02 ");
}

TEST_F(EvictionOrderTest, AChildThatIsNotPutFirstKeepsItsParent) {
  add_child(4, 3, 4);
  order_.put_first(node(3));
  EXPECT_EQ(evict_all(), "01 02 04 03 ");
}

TEST_F(EvictionOrderTest, TouchedBecomesNewest) {
  proves("IDX-07");
  order_.touch(node(1), 4);
  EXPECT_EQ(oldest(order_), "02 03 01 ");
  order_.touch(node(1), 4);
  EXPECT_EQ(oldest(order_), "02 03 01 ");
}

TEST_F(EvictionOrderTest, TouchedBecomesNewestAlsoWhenTheClockWentBack) {
  order_.touch(node(2), 0.5);
  EXPECT_EQ(oldest(order_), "01 03 02 ");
}

TEST_F(EvictionOrderTest, RemovedIsNotListed) {
  order_.remove(node(2));
  EXPECT_EQ(oldest(order_), "01 03 ");
}

TEST_F(EvictionOrderTest, PutBackTakesItsPlaceByTime) {
  proves("IDX-16", "IDX-18");
  order_.remove(node(1));
  add(order_, 1, 1);
  EXPECT_EQ(oldest(order_), "01 02 03 ");
  add(order_, 9, 2);  // As old as 02, which was there first.
  EXPECT_EQ(oldest(order_), "01 02 09 03 ");
}

TEST_F(EvictionOrderTest, RankDecidesBetweenEquallyOldOnes) {
  add(order_, 4, 3);
  order_.set_rank(node(3), 1);
  EXPECT_EQ(oldest(order_), "01 02 04 03 ");
  order_.set_rank(node(4), 2);
  EXPECT_EQ(oldest(order_), "01 02 03 04 ");
}

TEST_F(EvictionOrderTest, ABlockStaysWhileAChildIsListed) {
  proves("RUL-27");
  add_child(4, 1, 4);
  EXPECT_EQ(oldest(order_), "02 03 04 01 ");
  EXPECT_EQ(evict_all(), "02 03 04 01 ");
}

TEST_F(EvictionOrderTest, ABlockThatLostItsLastChildTakesItsPlaceByUse) {
  add_child(4, 2, 4);
  add_child(5, 2, 5);
  order_.remove(node(4));
  EXPECT_EQ(oldest(order_), "01 03 05 02 ");
  order_.remove(node(5));
  EXPECT_EQ(oldest(order_), "01 02 03 ");
  order_.touch(node(2), 6);
  EXPECT_EQ(oldest(order_), "01 03 02 ");
}

TEST_F(EvictionOrderTest, ChildrenMayComeBeforeTheirParents) {
  add_child(9, 8, 0.1);
  EXPECT_EQ(oldest(order_), "09 01 02 03 ");
  add(order_, 8, 0);
  EXPECT_EQ(evict_all(), "09 08 01 02 03 ");
}

TEST_F(EvictionOrderTest, ParentsMayLeaveBeforeTheirChildrenAndComeBack) {
  add_child(4, 1, 4);
  order_.remove(node(1));
  EXPECT_EQ(oldest(order_), "02 03 04 ");
  add(order_, 1, 1);
  EXPECT_EQ(oldest(order_), "02 03 04 01 ");
  order_.remove(node(1));
  order_.remove(node(4));
  add(order_, 1, 1);
  EXPECT_EQ(oldest(order_), "01 02 03 ");
}

TEST_F(EvictionOrderTest, AnotherParentReleasesTheFirst) {
  add_child(4, 1, 4);
  order_.set_parent(node(4), key(2));
  EXPECT_EQ(oldest(order_), "01 03 04 02 ");
  order_.set_parent(node(4), std::nullopt);
  EXPECT_EQ(oldest(order_), "01 02 03 04 ");
}

TEST_F(EvictionOrderTest, ACircleOfParentsLeavesToo) {
  order_.set_parent(node(1), key(2));
  order_.set_parent(node(2), key(1));
  order_.set_parent(node(3), key(3));
  EXPECT_EQ(oldest(order_), "03 01 02 ");
  EXPECT_EQ(evict_all(), "03 01 02 ");
}

TEST_F(EvictionOrderTest, PlainLruKnowsNoParents) {
  EvictionOrder plain(Eviction::kLru);
  fill(plain, 3);
  plain.set_parent(node(3), key(1));
  EXPECT_EQ(oldest(plain), "01 02 03 ");
  plain.put_first(node(3));
  EXPECT_EQ(oldest(plain), "03 01 02 ");
}

// The order is checked against its definition after random changes.
TEST_F(EvictionOrderTest, RandomChangesKeepTheOrder) {
  std::mt19937 random(7);
  for (unsigned n = 1; n <= 3; ++n) order_.remove(node(n));
  std::map<unsigned, unsigned> parents;  // Of those listed; 0: none.
  std::map<unsigned, double> used;
  std::set<unsigned> first;  // Those put first.
  double now = 0;
  for (int step = 0; step < 3000; ++step) {
    const unsigned n = 1 + random() % 40;
    now += 1;
    if (!used.contains(n)) {
      add(order_, n, used[n] = now);
      parents[n] = random() % 41;
      if (parents[n] == n) parents[n] = 0;
      if (parents[n] != 0) order_.set_parent(node(n), key(parents[n]));
    } else if (const unsigned change = random() % 5; change == 0) {
      order_.put_first(node(n));
      first.insert(n);
    } else if (change < 3) {
      order_.touch(node(n), used[n] = now);
      first.erase(n);
    } else {
      order_.remove(node(n));
      used.erase(n);
      first.erase(n);
      parents.erase(n);
    }
    std::vector<std::tuple<bool, bool, double, unsigned>> expected;
    for (const auto& [listed, at] : used) {
      const bool inner = std::any_of(parents.begin(), parents.end(),
                                     [own = listed](auto& p) { return p.second == own; });
      expected.emplace_back(inner, !first.contains(listed), at, listed);
    }
    std::sort(expected.begin(), expected.end());
    std::vector<BlockHash> keys;
    for (const auto& entry : expected) keys.push_back(key(std::get<3>(entry)));
    ASSERT_EQ(order_.oldest(99), keys) << step;
  }
}

}  // namespace
}  // namespace kvkeep
