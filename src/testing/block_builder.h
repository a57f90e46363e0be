// Blocks for tests, the same in every run: every payload byte is a function of the block's number
// and its position, so that a byte that comes back can be checked without a copy.
//
// Threads: any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/block_codec.h"
#include "kvkeep/block.h"

namespace kvkeep::testing {

struct TestBlock {
  std::string name;
  BlockHash hash;
  BlockInput input;
  std::optional<std::string> identity;
  // The seed-exact profile refuses it.
  bool extended_only = false;
};

// A fixed time; the block's identity.
EncodeContext test_context(Profile profile, const TestBlock& block);

// SHA-256 of k as 8 bytes, little-endian.
BlockHash key_of(uint64_t k);

// Byte `position` of the tensors of block k, laid end to end.
std::byte payload_byte(uint64_t k, uint64_t position);
// A row-major tensor of the payload from `position` on. Owns its bytes.
Tensor payload(DType dtype, Shape shape, uint64_t k, uint64_t position = 0);
// True if the tensor's bytes are that payload.
bool is_payload(const Tensor& tensor, uint64_t k, uint64_t position = 0);

// One layer, a pair of F16 [1,4,64,64]; 64 tokens, model "m", types ["KVCache"], meta [(64)].
TestBlock blk(uint64_t k);
// A pair of U8 tensors whose file has exactly `file_bytes` bytes, encoded with block size 0 and the
// time of test_context(). Aborts if no such block exists (less than about 1 KiB).
TestBlock sized(uint64_t k, uint64_t file_bytes, Profile profile = Profile::kExtended);
// A pair of BF16 tensors of `mib` MiB together.
TestBlock mib(uint64_t k, uint32_t mib);

// Small blocks of every kind of state, element, dtype, stride, text and metadata that can be
// stored.
std::vector<TestBlock> all_kinds();
// Composite elements nested `levels` deep; kNestingMax are allowed.
TestBlock nested(size_t levels);

// The bytes of a safetensors file: length, header as given, data. Nothing is checked.
std::vector<std::byte> raw_file(std::string_view header, BytesView data);

}  // namespace kvkeep::testing
