// encode_block(): one pass over the tensors' bytes, each piece digested while it is in the cache.

#include <cstring>
#include <new>

#include "base/bytes.h"
#include "codec/block_codec.h"
#include "codec/block_metadata.h"
#include "codec/block_plan.h"
#include "codec/digest.h"
#include "codec/gather.h"
#include "codec/state_reader.h"
#include "io/file_system.h"

namespace kvkeep {
namespace {

void write_header(const BlockPlan& plan, std::byte* file) {
  store_le<uint64_t>(file, plan.text.size());
  std::memcpy(file + 8, plan.text.data(), plan.text.size());
}

void write_tensors(const BlockPlan& plan, std::byte* data, const PieceSink& sink) {
  const auto& entries = plan.header.tensors();
  for (size_t i = 0; i < entries.size(); ++i) {
    std::byte* const to = data + entries[i].begin;
    if (plan.sources[i] != nullptr) {
      gather(*plan.sources[i], to, sink);
      continue;
    }
    const size_t bytes = entries[i].end - entries[i].begin;
    std::memset(to, 0, bytes);
    if (sink) sink({to, bytes});
  }
}

Status fill(const BlockPlan& plan, std::byte* file) {
  write_header(plan, file);
  if (!plan.has_digest) {
    write_tensors(plan, file + plan.data_at(), {});
    return {};
  }
  KVKEEP_TRY_ASSIGN(FileDigest digest, FileDigest::start());
  digest.update({file, plan.data_at()});  // The digits are still '0'.
  write_tensors(plan, file + plan.data_at(), [&digest](BytesView piece) { digest.update(piece); });
  const std::string digits = digest.digits();
  std::memcpy(file + plan.digits_at, digits.data(), digits.size());
  return {};
}

void clear_tail(const PooledBuffer& buffer, uint64_t file_bytes) {
  const uint64_t end = std::min<uint64_t>(round_up(file_bytes, kIoAlign), buffer.capacity());
  std::memset(buffer.data() + file_bytes, 0, end - file_bytes);
}

Result<ImagePtr> encode(const BlockHash& hash, const BlockInput& input,
                        const EncodeContext& context, BufferPool& pool) {
  KVKEEP_TRY_ASSIGN(const BlockPlan plan, plan_block(hash, input, context));
  const uint64_t file_bytes = plan.file_bytes();
  KVKEEP_TRY_ASSIGN(PooledBuffer buffer, pool.allocate(file_bytes));
  KVKEEP_TRY(fill(plan, buffer.data()));
  clear_tail(buffer, file_bytes);

  // The image's layers are what a reader of the file gets, by the reader's own code.
  KVKEEP_TRY_ASSIGN(BlockHeader header, read_block_header(plan.header));
  const BytesView data{buffer.data() + plan.data_at(), plan.header.data_bytes()};
  KVKEEP_TRY_ASSIGN(RebuiltLayers rebuilt, rebuild_layers(plan.header, header.info, data));
  return ImagePtr(std::make_shared<const Image>(std::move(buffer), file_bytes, std::move(header),
                                                std::move(rebuilt.layers),
                                                rebuilt.misaligned_tensors));
}

Status no_memory() { return Status(Code::kResourceExhausted, "no memory to encode the block"); }

}  // namespace

Result<ImagePtr> encode_block(const BlockHash& hash, const BlockInput& input,
                              const EncodeContext& context, BufferPool& pool) {
  try {
    return encode(hash, input, context, pool);
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

Result<uint64_t> encoded_bytes(const BlockHash& hash, const BlockInput& input,
                               const EncodeContext& context) {
  try {
    KVKEEP_TRY_ASSIGN(const BlockPlan plan, plan_block(hash, input, context));
    return plan.file_bytes();
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

}  // namespace kvkeep
