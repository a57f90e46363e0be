// BlockPool: which blocks of tokens requests hold, by small numbers.
//
// A pool hands out block ids to requests and remembers which key each id stands for. Its blocks
// hold no data: the data belongs to the cache, under the key. An id that no request holds any more
// stays known by its key until the pool needs it for another block.
//
//   free -- allocate(), acquire() --> held -- last unref() --> known by its key, or free
//
// Threads: any thread.
// Memory:  some 150 bytes per block, grown as blocks are used, at most max_blocks of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kvkeep/block_hash.h"
#include "kvkeep/status.h"

namespace kvkeep {

using BlockId = uint32_t;

struct PoolBlock {
  BlockId id = 0;
  std::optional<BlockHash> hash;  // The key that it stands for, if any.
  uint32_t token_count = 0;
  uint32_t ref_count = 0;
  uint64_t generation = 0;  // Of the cached block when the key was registered (LeasedBlock).
};

// The blocks of one request, in the order of its tokens.
struct BlockTable {
  std::string request_id;
  std::vector<BlockId> block_ids;
  uint64_t num_tokens = 0;
  // Keeps the blocks that a match found: referenced in the pool and leased in the cache for as long
  // as any copy of the table lives. Null in a table that the caller filled.
  std::shared_ptr<const void> hold;
};

struct PoolStats {
  uint64_t max_blocks = 0;
  uint64_t held_blocks = 0;      // With references.
  uint64_t shared_blocks = 0;    // Of these, with more than one.
  uint64_t known_blocks = 0;     // With a key and without references.
  uint64_t recycled_blocks = 0;  // Known blocks that were given up for others, so far.
};

// A key to acquire.
struct PoolKey {
  BlockHash hash;
  uint32_t token_count = 0;
  uint64_t generation = 0;
};

class BlockPool {
 public:
  // `block_size`: tokens of a full block.
  BlockPool(uint32_t block_size, size_t max_blocks);
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  uint32_t block_size() const { return block_size_; }
  size_t max_blocks() const { return max_blocks_; }

  // A block without a key, with one reference. Where none is free the one without references that
  // was used least recently loses its key. kResourceExhausted if requests hold all of them.
  Result<BlockId> allocate();
  // Nothing for an id that the pool never gave out.
  std::optional<PoolBlock> get(BlockId id) const;
  // False, and nothing changes, for an id that is neither held nor known by a key.
  bool ref(BlockId id);
  // False, and nothing changes, for a block without references.
  bool unref(BlockId id);
  // From now on the block stands for this key. One that stood for it before loses it.
  // False for an id that is neither held nor known.
  bool register_hash(BlockId id, const BlockHash& hash, uint64_t generation = 0);
  std::optional<BlockId> find(const BlockHash& hash) const;
  // The key stands for no block any more; requests keep theirs.
  void forget(const BlockHash& hash);

  // References to the blocks of these keys, in one step: those known, and new ones for the others.
  // Ends early where the pool is full, and then holds those before.
  std::vector<BlockId> acquire(std::span<const PoolKey> keys);
  // Takes back one reference to each, the last first, so that the end of a chain is recycled before
  // its head.
  void release(std::span<const BlockId> ids);

  PoolStats stats() const;

 private:
  struct State;

  const uint32_t block_size_;
  const size_t max_blocks_;
  const std::unique_ptr<State> state_;
};

}  // namespace kvkeep
