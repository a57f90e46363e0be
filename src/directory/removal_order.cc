#include "directory/removal_order.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace kvkeep {
namespace {

using Links = std::vector<std::optional<size_t>>;

Links links_of(const std::vector<RemovalCandidate>& blocks) {
  std::unordered_map<BlockHash, size_t> position;
  for (size_t i = 0; i < blocks.size(); ++i) position.emplace(blocks[i].hash, i);
  Links links(blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (!blocks[i].parent) continue;
    const auto at = position.find(*blocks[i].parent);
    if (at != position.end()) links[i] = at->second;
  }
  return links;
}

std::vector<size_t> most_recent_first(const std::vector<RemovalCandidate>& blocks) {
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (blocks[a].last_access != blocks[b].last_access)
      return blocks[a].last_access > blocks[b].last_access;
    return blocks[a].hash < blocks[b].hash;
  });
  return order;
}

}  // namespace

// Walks start at the most recently used block and lead up through its ancestors, as far as no
// earlier walk has been there. Walks in reverse, each from its start, are then the order wanted: a
// child is in its parent's walk before it, or in a later walk.
RemovalOrder::RemovalOrder(std::vector<RemovalCandidate> blocks)
    : blocks_(std::move(blocks)), parent_(links_of(blocks_)) {
  constexpr size_t kNever = SIZE_MAX;
  std::vector<size_t> walk_of(blocks_.size(), kNever);
  std::vector<std::vector<size_t>> walks;
  for (const size_t start : most_recent_first(blocks_)) {
    if (walk_of[start] != kNever) continue;
    const size_t walk = walks.size();
    walks.emplace_back();
    for (size_t at = start;;) {
      walk_of[at] = walk;
      walks.back().push_back(at);
      if (!parent_[at]) break;
      const size_t above = *parent_[at];
      if (walk_of[above] == walk) parent_[at].reset();  // A cycle.
      if (walk_of[above] != kNever) break;
      at = above;
    }
  }
  order_.reserve(blocks_.size());
  for (auto walk = walks.rbegin(); walk != walks.rend(); ++walk) {
    order_.insert(order_.end(), walk->begin(), walk->end());
  }
}

std::vector<size_t> RemovalOrder::choose(
    const std::function<bool(const RemovalCandidate&, uint64_t)>& wanted) const {
  std::vector<bool> has_child_that_stays(blocks_.size(), false);
  std::vector<size_t> chosen;
  uint64_t bytes = 0;
  for (const size_t at : order_) {
    if (!has_child_that_stays[at] && wanted(blocks_[at], bytes)) {
      chosen.push_back(at);
      bytes += blocks_[at].allocated;
    } else if (parent_[at]) {
      has_child_that_stays[*parent_[at]] = true;
    }
  }
  return chosen;
}

std::vector<size_t> RemovalOrder::with_descendants(
    const std::function<bool(const RemovalCandidate&)>& wanted) const {
  std::vector<bool> goes(blocks_.size(), false);
  for (auto at = order_.rbegin(); at != order_.rend(); ++at) {  // Parents first.
    goes[*at] = wanted(blocks_[*at]) || (parent_[*at] && goes[*parent_[*at]]);
  }
  std::vector<size_t> chosen;
  for (const size_t at : order_) {
    if (goes[at]) chosen.push_back(at);
  }
  return chosen;
}

}  // namespace kvkeep
