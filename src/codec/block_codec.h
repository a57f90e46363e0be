// Blocks to images and back: docs/format.md (contract part B).
//
// Pure: no clock, no file system. What decode would refuse, encode refuses.
//
// Threads: any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "codec/image.h"
#include "io/buffer_pool.h"
#include "kvkeep/block.h"
#include "kvkeep/block_hash.h"
#include "kvkeep/options.h"
#include "kvkeep/status.h"

namespace kvkeep {

// What a cache adds to a block when it is stored.
struct EncodeContext {
  double created_at = 0;                  // Seconds since the Unix epoch.
  uint32_t block_size = 0;                // Tokens; 0 stamps the block's own token count.
  std::optional<double> turboquant_bits;  // Expected depth (B.13).
  std::optional<std::string> identity;    // 64 hex characters; extended profile only.
  Profile profile = Profile::kExtended;
};

// The block's image, tensors gathered and digested in one pass over their bytes. The seed-exact
// profile has no place for input.parent and leaves it out. kInvalidArgument (count, stride, shape
// or text that is malformed or out of range; the message names the layer), kUnimplemented (dtype or
// state that the profile cannot hold), kFailedPrecondition with Refusal::kRefusedBits (depth that
// is contradictory or not proven, DEF-55, DEF-76), kResourceExhausted (pool, memory).
Result<ImagePtr> encode_block(const BlockHash& hash, const BlockInput& input,
                              const EncodeContext& context, BufferPool& pool);

// The exact size of the file that encode_block() would make. Copies no tensor. Errors as
// encode_block().
Result<uint64_t> encoded_bytes(const BlockHash& hash, const BlockInput& input,
                               const EncodeContext& context);

struct DecodeContext {
  std::optional<BlockHash> expected;  // The file must be of this block.
  bool require_digest = false;
};

// Verifies digest, structure and key of the file in the first `file_bytes` bytes of `buffer` and
// rebuilds its layers as views. kDataLoss with MissReason kDamaged, or kNotFound with kVersion or
// kUndigested; kResourceExhausted if there is no memory for what the header describes.
Result<ImagePtr> decode_image(PooledBuffer buffer, uint64_t file_bytes,
                              const DecodeContext& context);

// The header alone, from the first bytes of a file of `file_bytes` bytes; tensor data is not
// needed. `prefix` must hold header_bytes() bytes. Errors as decode_image().
Result<BlockHeader> decode_header(BytesView prefix, uint64_t file_bytes);

// How many bytes of the file decode_header() needs: 8 + N. kDataLoss if the first 8 bytes say
// something impossible. REQUIRES: first8.size() >= 8.
Result<uint64_t> header_bytes(BytesView first8, uint64_t file_bytes);

}  // namespace kvkeep
