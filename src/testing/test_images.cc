#include "testing/test_images.h"

#include <cstring>

#include "testing/exact_buffer_pool.h"

namespace kvkeep::testing {
namespace {

constexpr uint64_t kPoolBytes = uint64_t{4} << 30;

}  // namespace

Result<ImagePtr> encode(const TestBlock& block, Profile profile) {
  const auto pool = ExactBufferPool::create(kPoolBytes);
  return encode_block(block.hash, block.input, test_context(profile, block), *pool);
}

Result<ImagePtr> decode(BytesView file, const DecodeContext& context) {
  const auto pool = ExactBufferPool::create(kPoolBytes);
  KVKEEP_TRY_ASSIGN(PooledBuffer buffer, pool->allocate(file.size()));
  if (!file.empty()) std::memcpy(buffer.data(), file.data(), file.size());
  return decode_image(std::move(buffer), file.size(), context);
}

}  // namespace kvkeep::testing
