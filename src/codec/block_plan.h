// What a block's file will be, byte for byte but for the tensors and the digest: planned before
// anything is copied, so that the exact size is known and every refusal costs nothing.
//
// Ownership: the plan refers to the tensors of its input.
// Threads:   a plain value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codec/block_codec.h"
#include "codec/safetensors_header.h"

namespace kvkeep {

struct BlockPlan {
  SafetensorsHeader header;  // With its lookup built.
  std::vector<const Tensor*>
      sources;       // One per tensor of the header; null where the file holds zeros.
  std::string text;  // The header as the file has it, padding included.
  bool has_digest = false;
  uint64_t digits_at = 0;  // Where the digits of the digest go, from the start of the file.

  uint64_t data_at() const { return 8 + text.size(); }
  uint64_t file_bytes() const { return data_at() + header.data_bytes(); }
};

// Errors as encode_block(), but for the pool.
Result<BlockPlan> plan_block(const BlockHash& hash, const BlockInput& input,
                             const EncodeContext& context);

}  // namespace kvkeep
