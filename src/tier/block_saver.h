// BlockSaver accepts blocks: checks them, encodes them once, and hands them to the write queue.
//
// Threads: any thread.
#pragma once

#include "kvkeep/block_cache.h"
#include "tier/cache_state.h"
#include "tier/reclaimer.h"

namespace kvkeep {

class BlockSaver {
 public:
  explicit BlockSaver(CacheState& state) : state_(state), reclaimer_(state) {}

  // TieredBlockCache::save_block().
  Result<SaveOutcome> save(const BlockHash& hash, BlockInput input);
  // Counts a refusal that was decided, here or before.
  Status count(Status refused);

 private:
  enum class Presence : uint8_t { kAbsent, kPresent, kUnsure };

  Presence look(const BlockHash& hash, uint64_t& generation);
  bool is_present(const BlockHash& hash);
  bool keeps_hot(const BlockInput& input) const;
  Result<SaveOutcome> save_present(const BlockHash& hash, const BlockInput& input);
  Result<SaveOutcome> store_hot(const BlockHash& hash, const ImagePtr& image,
                                const LayoutPtr& layout);
  Result<SaveOutcome> count_present();
  Status complete(BlockInput& input) const;
  Result<ImagePtr> encode(const BlockHash& hash, const BlockInput& input) const;
  Result<SaveOutcome> accept(const BlockHash& hash, ImagePtr image, LayoutPtr layout);
  Status fits_the_disk(const Image& image) const;
  Status no_ticket() const;
  bool publish(const BlockHash& hash, std::unique_ptr<PendingBlock> pending, bool& queued);

  CacheState& state_;
  Reclaimer reclaimer_;
};

}  // namespace kvkeep
