// Encoding and decoding in one line, in buffers that are exactly as long as the file, so that the
// address sanitizer sees every byte too far.
//
// Threads: any thread.
#pragma once

#include "codec/block_codec.h"
#include "testing/block_builder.h"

namespace kvkeep::testing {

// `block` with the context of test_context().
Result<ImagePtr> encode(const TestBlock& block, Profile profile = Profile::kExtended);
// A copy of `file` in a buffer of its own.
Result<ImagePtr> decode(BytesView file, const DecodeContext& context = {});

}  // namespace kvkeep::testing
