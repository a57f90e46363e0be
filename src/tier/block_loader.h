// BlockLoader finds blocks in memory or on disk and verifies what it reads.
//
// Threads: any thread. Reads happen on the calling thread.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "kvkeep/block_cache.h"
#include "tier/cache_state.h"

namespace kvkeep {

class BlockLoader {
 public:
  explicit BlockLoader(CacheState& state) : state_(state) {}

  // TieredBlockCache::load_blocks(), while the cache is open.
  BatchResult load(std::span<const BlockHash> keys, BatchMode mode);
  void count_miss(const Status& missed);

 private:
  // A block on disk as the index knew it, and later what came of reading it.
  struct Found {
    uint64_t generation = 0;
    uint64_t file_bytes = 0;
    LayoutPtr layout;
    PooledBuffer buffer;
    Result<ImagePtr> image = Status(Code::kInternal, "not read");
    Source source = Source::kDisk;
  };

  Found find(const BlockHash& hash);
  std::vector<Found> find_all(std::span<const BlockHash> keys, BatchMode mode);
  void read(std::span<const BlockHash> keys, std::vector<Found>& found);
  Result<ImagePtr> verify(const BlockHash& hash, Found& found, const ReadOutcome& outcome);
  Result<ImagePtr> check(const BlockHash& hash, Found& found, const ReadOutcome& outcome);
  Result<LoadedBlock> deliver(const BlockHash& hash, const Found& found);
  void touch(const BlockHash& hash);
  void count_hit(const Image& image, Source source);
  CacheState& state_;
};

}  // namespace kvkeep
