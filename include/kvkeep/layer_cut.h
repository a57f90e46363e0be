// Cutting the state of a prompt into blocks along its tokens, and joining it again.
//
// Which states can be cut is known by the class name of a layer's cache (docs/prefix.md): keys and
// values of plain attention can, between any two tokens. A sliding window that has wrapped and a
// recurrent state cannot: they belong to the very last token, and a block either holds the whole of
// one or a placeholder.
//
// Tokens are on axis 2 of tensors [batch, heads, tokens, width] and of every tensor of a TurboQuant
// record, on axis 1 of other tensors of rank 3. Tensors without such an axis are held whole.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kvkeep/block.h"

namespace kvkeep {

// True if a layer of this type can be cut between any two of its tokens. A CacheList can if all its
// tensors have rank 4 and no member names a class that cannot. False for types that are not known.
bool is_cuttable(std::string_view layer_type, const LayerState& layer);

// How many tokens a cuttable layer holds. Nothing if its tensors disagree or none has a token axis.
std::optional<uint64_t> tokens_in(const LayerState& layer);

// Tokens `begin` up to `end` of a cuttable layer: strided views for a save, no copy.
// kInvalidArgument unless begin <= end <= tokens_in(layer).
Result<LayerState> cut_layer(const LayerState& layer, uint64_t begin, uint64_t end);

// What a block holds in place of a state that is not its own: a pair of F32 zeros of shape [1], as
// oMLX writes it.
LayerState placeholder_layer();
bool is_placeholder(const LayerState& layer);

// One tensor of a layer over several blocks.
struct JoinedTensor {
  struct Piece {
    const Tensor* tensor = nullptr;  // Into the blocks.
    uint64_t tokens = 0;             // How many of its tokens are used.
  };

  // Where it stands: the member of a cache list, or key (0) and value (1) of a TurboQuant state;
  // then indices of elements or fields.
  std::vector<uint32_t> path;
  DType dtype = DType::kU8;
  Shape shape;  // Of the whole.
  uint64_t bytes = 0;
  size_t axis = 0;
  std::vector<Piece> pieces;  // A tensor without a token axis has one, of the last block.
};

// The tensors of layer `layer` of these blocks, joined to `tokens` tokens. The layer must be
// cuttable. kFailedPrecondition if the blocks disagree in structure, dtype or shape, or hold fewer
// tokens. The result refers to `blocks`.
Result<std::vector<JoinedTensor>> join_layer(std::span<const LoadedBlock> blocks, size_t layer,
                                             uint64_t tokens);

// Copies the joined tensor, row-major. REQUIRES: destination.size() == joined.bytes.
void copy_joined(const JoinedTensor& joined, std::span<std::byte> destination);

}  // namespace kvkeep
