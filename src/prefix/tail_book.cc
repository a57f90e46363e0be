#include "prefix/tail_book.h"

#include <algorithm>
#include <functional>

namespace kvkeep {
namespace {

constexpr size_t kTailsPerParent = 8;
constexpr size_t kParents = 4096;

}  // namespace

void TailBook::add(const BlockHash& parent, uint32_t tokens) {
  MutexLock lock(mu_);
  std::deque<uint32_t>& tails = tails_of(parent);
  const auto known = std::find(tails.begin(), tails.end(), tokens);
  if (known != tails.end()) tails.erase(known);
  tails.push_back(tokens);
  if (tails.size() > kTailsPerParent) tails.pop_front();
}

std::optional<std::vector<uint32_t>> TailBook::lengths(const BlockHash& parent) const {
  MutexLock lock(mu_);
  const auto tails = tails_.find(parent);
  if (tails == tails_.end()) return std::nullopt;
  std::vector<uint32_t> lengths(tails->second.begin(), tails->second.end());
  std::sort(lengths.begin(), lengths.end(), std::greater<>());
  return lengths;
}

void TailBook::note(const BlockHash& parent) {
  MutexLock lock(mu_);
  tails_of(parent);
}

std::deque<uint32_t>& TailBook::tails_of(const BlockHash& parent) {
  if (tails_.size() >= kParents && tails_.count(parent) == 0) tails_.clear();
  return tails_[parent];
}

}  // namespace kvkeep
