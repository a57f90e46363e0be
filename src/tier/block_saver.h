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
  enum class Published : uint8_t {
    kQueued,
    kParked,   // The removal of the old file has to end first.
    kPresent,  // Somebody else was faster.
    kMisfit,   // The expectation has changed meanwhile.
  };

  Presence look(const BlockHash& hash, uint64_t& generation);
  bool is_present(const BlockHash& hash);
  bool keeps_hot(const BlockInput& input) const;
  Result<SaveOutcome> save_present(const BlockHash& hash, const BlockInput& input);
  Result<SaveOutcome> store_hot(const BlockHash& hash, const ImagePtr& image,
                                const LayoutPtr& layout, const Expectation& expected,
                                Residency residency);
  Status no_room_in_ram(const Image& image) const;
  Result<SaveOutcome> look_and_store(const BlockHash& hash, BlockInput input);
  Result<SaveOutcome> count_present();
  Result<ImagePtr> encode(const BlockHash& hash, const BlockInput& input,
                          const Expectation& expected) const;
  Result<SaveOutcome> accept(const BlockHash& hash, ImagePtr image, LayoutPtr layout,
                             const Expectation& expected);
  Status fits_the_disk(const Image& image) const;
  Status no_ticket() const;
  Published publish(const BlockHash& hash, std::unique_ptr<PendingBlock> pending,
                    const Expectation& expected);

  CacheState& state_;
  Reclaimer reclaimer_;
};

}  // namespace kvkeep
