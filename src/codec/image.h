// Image: the exact bytes of a block's file in memory, with the layout already understood.
//
// A block is encoded once, when it is saved, or read once, when it is loaded; from then on the same
// image serves the write queue, loads and (later) the hot tier. Nobody copies or parses it again.
//
// Threads: immutable; share it as ImagePtr.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/buffer_pool.h"
#include "kvkeep/block.h"
#include "kvkeep/block_hash.h"

namespace kvkeep {

class Image;
using ImagePtr = std::shared_ptr<const Image>;

// What a block's file says about the block.
struct BlockHeader {
  BlockHash hash;
  BlockInfo info;
  std::optional<double> created_at;     // Seconds since the Unix epoch.
  std::optional<std::string> identity;  // kvkeep_identity: lower-case hex SHA-256.
  bool has_digest = false;              // Extended profile.
};

class Image {
 public:
  // `layers` are views into `buffer` without owners; tensors that are not views (stand-ins for
  // zero-dim tensors, copies of misaligned ones) own their bytes.
  Image(PooledBuffer buffer, uint64_t file_bytes, BlockHeader header,
        std::vector<LayerState> layers, uint32_t misaligned_tensors);

  const BlockHeader& header() const { return header_; }
  // Exactly the file.
  BytesView bytes() const { return {buffer_.data(), file_bytes_}; }
  // The file and zeros up to a multiple of kIoAlign: what a direct write takes.
  BytesView padded() const;
  uint64_t file_bytes() const { return file_bytes_; }
  // RUL-10: what the image really occupies.
  uint64_t ram_bytes() const { return buffer_.capacity(); }
  uint32_t misaligned_tensors() const { return misaligned_tensors_; }

  // The block's layers as read-only views that keep `image` alive. Parses nothing.
  static LoadedBlock lend(const ImagePtr& image, Source source);

 private:
  PooledBuffer buffer_;
  uint64_t file_bytes_;
  BlockHeader header_;
  std::vector<LayerState> layers_;
  uint32_t misaligned_tensors_;
};

}  // namespace kvkeep
