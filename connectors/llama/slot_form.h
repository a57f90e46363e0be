// The numbers of a slot file that its reader and its writer share (docs/llama-slots.md).
#pragma once

#include <bit>
#include <cstdint>

namespace kvkeep::llama {

static_assert(std::endian::native == std::endian::little, "slot files are little-endian");

inline constexpr uint32_t kSlotMagic = 0x67677371;

// The token words of a packed list: a mark that no token is, the form's number, how many tokens,
// the tokens, how many pieces of media.
inline constexpr int32_t kPackedMark = -1;
inline constexpr int32_t kPackedForm = 1;
inline constexpr uint32_t kPackedExtraWords = 4;

inline constexpr uint64_t kFileHeadBytes = 12;  // Magic, version, count of token words.
inline constexpr uint64_t kCountBytes = 4;      // Of streams, of cells.
inline constexpr uint64_t kCellBytes = 12;      // Position, count of sequences, one sequence.
inline constexpr uint64_t kStateHeadBytes = 8;  // Is V transposed, number of layers.
inline constexpr uint64_t kRotationBytes = 8;   // Of K, of V.
// Before the rows of K or of V of one layer.
inline constexpr uint64_t kRowsHeadBytes = 12;        // Type, bytes of a row.
inline constexpr uint64_t kTransposedHeadBytes = 12;  // Type, bytes of an element, rows.

inline constexpr uint32_t kFirstVersionWithRotation = 4;

}  // namespace kvkeep::llama
