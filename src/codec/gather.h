// Copies a strided tensor into row-major memory, piece by piece, so that whoever looks at the bytes
// next (the digest) finds them in the processor's cache.
//
// Threads: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "kvkeep/status.h"
#include "kvkeep/tensor.h"

namespace kvkeep {

inline constexpr size_t kGatherPieceBytes = 64 << 10;

// Where the bytes of a strided tensor lie, relative to its element [0, 0, …]: [low, high).
struct Reach {
  int64_t low = 0;
  int64_t high = 0;
};

// kInvalidArgument if shape and strides disagree in length or if a number overflows 63 bits.
Result<Reach> reach_of(DType dtype, const Shape& shape, const std::vector<int64_t>& byte_strides);

// The number of bytes that gather() writes. kInvalidArgument if `source` does not hold the bytes
// that its dtype, shape and strides ask for; kUnimplemented for a dtype that does not exist.
Result<uint64_t> check_source(const Tensor& source);

// Gets each piece right after it was written, in order. May be empty.
using PieceSink = std::function<void(BytesView)>;

// REQUIRES: check_source(source) is OK and `to` has room for that many bytes.
void gather(const Tensor& source, std::byte* to, const PieceSink& sink);

}  // namespace kvkeep
