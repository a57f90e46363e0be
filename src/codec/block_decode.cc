// decode_image() and decode_header(): foreign bytes to a block, or the reason why not.

#include <cstring>
#include <new>

#include "base/bytes.h"
#include "codec/block_codec.h"
#include "codec/block_metadata.h"
#include "codec/parsed_file.h"
#include "codec/state_reader.h"
#include "io/file_system.h"

namespace kvkeep {
namespace {

// The digest comes first: a version that is not understood is only believed if the bytes are.
Result<BlockHeader> read_header(const SafetensorsHeader& header) {
  KVKEEP_TRY(check_version(header));
  return read_block_header(header);
}

Status check_context(const BlockHeader& header, const DecodeContext& context) {
  if (context.expected && !(header.hash == *context.expected)) {
    return damaged("the file is of block " + header.hash.short_hex() + ", not " +
                   context.expected->short_hex());
  }
  if (context.require_digest && !header.has_digest) {
    return Status(Code::kNotFound, MissReason::kUndigested, "the file has no digest");
  }
  return {};
}

Result<ImagePtr> decode(PooledBuffer buffer, uint64_t file_bytes, const DecodeContext& context) {
  if (file_bytes > buffer.capacity()) return damaged("the file was not read whole");
  const BytesView file{buffer.data(), static_cast<size_t>(file_bytes)};
  KVKEEP_TRY_ASSIGN(const ParsedFile parsed, parse_file(file, file_bytes));
  KVKEEP_TRY(check_digest(parsed, file));
  KVKEEP_TRY_ASSIGN(BlockHeader header, read_header(parsed.header));
  KVKEEP_TRY(check_context(header, context));
  KVKEEP_TRY_ASSIGN(RebuiltLayers rebuilt,
                    rebuild_layers(parsed.header, header.info, file.subspan(parsed.data_at)));
  const uint64_t padded = std::min<uint64_t>(round_up(file_bytes, kIoAlign), buffer.capacity());
  std::memset(buffer.data() + file_bytes, 0, padded - file_bytes);
  return ImagePtr(std::make_shared<const Image>(std::move(buffer), file_bytes, std::move(header),
                                                std::move(rebuilt.layers),
                                                rebuilt.misaligned_tensors));
}

Status no_memory() { return Status(Code::kResourceExhausted, "no memory to decode the block"); }

}  // namespace

Result<uint64_t> header_bytes(BytesView first8, uint64_t file_bytes) {
  if (file_bytes < 8) return damaged("the file has " + std::to_string(file_bytes) + " bytes");
  const auto n = load_le<uint64_t>(first8.data());
  if (n == 0 || n >= kHeaderBytesLimit || n > file_bytes - 8) {
    return damaged("a header of " + std::to_string(n) + " bytes in a file of " +
                   std::to_string(file_bytes));
  }
  return 8 + n;
}

Result<ImagePtr> decode_image(PooledBuffer buffer, uint64_t file_bytes,
                              const DecodeContext& context) {
  try {
    return decode(std::move(buffer), file_bytes, context);
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

Result<BlockHeader> decode_header(BytesView prefix, uint64_t file_bytes) {
  try {
    KVKEEP_TRY_ASSIGN(const ParsedFile parsed, parse_file(prefix, file_bytes));
    return read_header(parsed.header);
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

}  // namespace kvkeep
