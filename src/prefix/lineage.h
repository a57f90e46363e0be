// Lineage: which block ended a prompt before it was continued, so that the one before that can give
// up what only the end of a prompt needs.
//
// Threads: any thread.
#pragma once

#include <optional>
#include <unordered_map>

#include "base/mutex.h"
#include "kvkeep/block_hash.h"

namespace kvkeep {

class Lineage {
 public:
  // `tip` continues the prompt that ended with `former`. The block that ended it before that, if
  // known: nobody needs the whole state there any more.
  std::optional<BlockHash> extend(const BlockHash& former, const BlockHash& tip)
      KVKEEP_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    std::optional<BlockHash> superseded;
    if (const auto known = former_of_.find(former); known != former_of_.end()) {
      superseded = known->second;
      former_of_.erase(known);
    }
    if (former_of_.size() >= kMost) former_of_.clear();
    former_of_.insert_or_assign(tip, former);
    return superseded;
  }

 private:
  static constexpr size_t kMost = 4096;
  Mutex mu_;  // A leaf lock.
  std::unordered_map<BlockHash, BlockHash> former_of_ KVKEEP_GUARDED_BY(mu_);
};

}  // namespace kvkeep
