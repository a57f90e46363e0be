// Prefixes: a prefix cache as Python holds it, with what it stands on; and what its calls give.
//
// Threads: with the GIL.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "kvkeep/layer_cut.h"
#include "kvkeep/prefix_cache.h"

namespace kvkeep::python {

class Prefixes {
 public:
  static Result<std::shared_ptr<Prefixes>> open(std::shared_ptr<TieredBlockCache> cache,
                                                uint32_t block_size, size_t max_blocks,
                                                PrefixOptions options) {
    std::shared_ptr<Prefixes> made(new Prefixes(std::move(cache), block_size, max_blocks));
    KVKEEP_TRY_ASSIGN(made->prefixes_,
                      PrefixCache::open(made->pool_, *made->cache_, std::move(options)));
    return made;
  }
  PrefixCache* operator->() const { return prefixes_.get(); }
  uint32_t block_size() const { return pool_.block_size(); }

 private:
  Prefixes(std::shared_ptr<TieredBlockCache> cache, uint32_t block_size, size_t max_blocks)
      : cache_(std::move(cache)), pool_(block_size, max_blocks) {}

  std::shared_ptr<TieredBlockCache> cache_;
  BlockPool pool_;
  std::unique_ptr<PrefixCache> prefixes_;
};
using PrefixesPtr = std::shared_ptr<Prefixes>;

// `owner` outlives the match's hold.
struct Match {
  PrefixesPtr owner;
  PrefixMatch match;
};

using LoadedPtr = std::shared_ptr<const LoadedPrefix>;

struct Joined {
  LoadedPtr owner;
  JoinedTensor tensor;
};

}  // namespace kvkeep::python
