// BlockLoader finds blocks in memory or on disk and verifies what it reads.
//
// Threads: any thread. Reads happen on the calling thread; loads of one file share one read.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kvkeep/block_cache.h"
#include "tier/cache_state.h"
#include "tier/read_flights.h"

namespace kvkeep {

class BlockLoader {
 public:
  explicit BlockLoader(CacheState& state) : state_(state) {}

  // TieredBlockCache::load_blocks(), while the cache is open.
  BatchResult load(std::span<const BlockHash> keys, BatchMode mode, const LoadOptions& how = {});
  void count_miss(const Status& missed);

  // Reads a block that is only on disk into the hot tier. False if it is not there afterwards.
  // Counts as neither load nor lookup.
  bool warm(const BlockHash& hash);
  // What memory says; nothing is counted or touched.
  Explanation explain(const BlockHash& hash);

 private:
  // A block on disk as the index knew it, and later what came of reading it.
  struct Found {
    uint64_t generation = 0;
    uint64_t file_bytes = 0;
    LayoutPtr layout;
    ReadFlights::Seat seat;
    PooledBuffer buffer;
    Result<ImagePtr> image = Status(Code::kInternal, "not read");
    Source source = Source::kDisk;

    bool on_disk() const { return layout != nullptr; }
  };

  struct Call {
    const Duration began_at;
    const ExpectationPtr expected;  // As it was then.
  };

  Found find(const BlockHash& hash);
  std::vector<Found> find_all(std::span<const BlockHash> keys, BatchMode mode);
  void prepare(const BlockHash& hash, Found& found);
  void read(std::span<const BlockHash> keys, std::vector<Found>& found, bool promote,
            const Expectation& seen);
  Result<ImagePtr> verify(const BlockHash& hash, Found& found, const ReadOutcome& outcome);
  Result<ImagePtr> check(const BlockHash& hash, Found& found, const ReadOutcome& outcome);
  BatchResult find_read_deliver(std::span<const BlockHash> keys, BatchMode mode,
                                const LoadOptions& how);
  BatchResult all_lost(std::span<const BlockHash> keys, BatchMode mode);
  Result<LoadedBlock> lend(const BlockHash& hash, const Found& found, const Call& call,
                           const TokenDigest* tokens);
  Result<LoadedBlock> deliver(const BlockHash& hash, const Found& found, const Call& call,
                              const TokenDigest* tokens);
  void touch(const BlockHash& hash, Source source);
  void count_hit(const Image& image, Source source, Duration called_at);

  CacheState& state_;
  ReadFlights flights_;
};

}  // namespace kvkeep
