// Any bytes are either refused as a block file, or hold a block that survives being saved again.
//
// Memory errors are the sanitizers' part: the file lies in a buffer that is exactly as long.
#include <cstdio>
#include <cstdlib>

#include "codec/block_codec.h"
#include "testing/block_compare.h"
#include "testing/exact_buffer_pool.h"
#include "testing/test_images.h"

namespace kvkeep {
namespace {

void require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

// The header alone must say what the whole file says.
void check_header(BytesView file, const BlockHeader& whole) {
  const Result<uint64_t> length = header_bytes(file.first(8), file.size());
  require(length.ok() && *length <= file.size(), "the header of an accepted file has no length");
  const Result<BlockHeader> header = decode_header(file.first(*length), file.size());
  require(header.ok(), "the header of an accepted file is refused");
  require(header->hash == whole.hash && header->info.signature == whole.info.signature,
          "header and file disagree");
}

void check_saved_again(const ImagePtr& image) {
  const LoadedBlock block = Image::lend(image, Source::kDisk);
  const BlockInfo& info = block.info;
  const BlockInput input{block.layers,     info.token_count, info.model_name,
                         info.layer_types, info.meta_states, info.parent};
  EncodeContext context;
  context.block_size = info.block_size;
  const auto pool = testing::ExactBufferPool::create(uint64_t{1} << 30);
  const Result<ImagePtr> saved = encode_block(image->header().hash, input, context, *pool);
  if (!saved.ok()) return;  // A reader accepts more than a writer.

  const Result<ImagePtr> again = testing::decode((*saved)->bytes());
  require(again.ok(), "a saved block is refused: " + again.status().to_string());
  const std::string different =
      testing::difference(input, Image::lend(*again, Source::kDisk), Profile::kExtended);
  require(different.empty(), "a saved block changed: " + different);
}

}  // namespace
}  // namespace kvkeep

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const kvkeep::BytesView file = std::as_bytes(std::span(data, size));
  const kvkeep::Result<kvkeep::ImagePtr> image = kvkeep::testing::decode(file);
  if (!image.ok()) return 0;
  kvkeep::check_header(file, (*image)->header());
  kvkeep::check_saved_again(*image);
  return 0;
}
