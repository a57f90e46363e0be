// SlotWriter puts blocks together to a slot file that llama-server restores: the tokens in a packed
// list, positions from 0, one sequence, the state of every token of every layer.
//
//   std::vector<std::byte> file(slot_file_bytes(layout, tokens.size()));
//   auto writer = SlotWriter::begin(layout, slot, tokens, file);
//   if (!writer.ok()) return writer.status();
//   for (…) KVKEEP_TRY(writer->put(first_token, block, count));
//   KVKEEP_TRY(writer->finish());
//
// A server checks little of what it restores, and some damage ends it: hand over nothing that
// finish() did not approve.
//
// Threads:   one.
// Ownership: the memory is the caller's and outlives the writer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "connectors/llama/slot_layout.h"
#include "kvkeep/block.h"
#include "kvkeep/status.h"

namespace kvkeep::llama {

class SlotWriter {
 public:
  // Writes everything but the rows. The tokens go to slot `slot`, which with more than one stream
  // is also the stream's number; a server that restores the file does not mind which slot it names.
  // kInvalidArgument: a layout, slot or token that cannot be, a
  // layout without layers, memory that is not exactly slot_file_bytes(); kUnimplemented as
  // check_layout().
  static Result<SlotWriter> begin(const SlotLayout& layout, uint32_t slot,
                                  std::span<const uint32_t> tokens, std::span<std::byte> out);

  // The first `count` tokens of the block become those from `first_token` on. Blocks come in order,
  // without gaps. kInvalidArgument, and nothing is written, unless the block has the layout's
  // layers, each in the form of pair_forms(), and these tokens are the next and are there.
  Status put(uint64_t first_token, const LoadedBlock& block, uint64_t count);

  // kFailedPrecondition unless the rows of all tokens were put.
  Status finish() const;

 private:
  // Where the keys or the values of a layer stand, and how they look as a tensor.
  struct Place {
    TensorForm form{};
    uint64_t at = 0;
  };

  SlotWriter(const SlotLayout& layout, uint64_t tokens, std::span<std::byte> out)
      : layout_(layout), tokens_(tokens), out_(out) {}

  void write_all_but_rows(uint32_t slot, std::span<const uint32_t> tokens);
  void write_row_heads(uint64_t at);
  Status check_block(const LoadedBlock& block, uint64_t count) const;
  void copy(const Place& place, const Tensor& from, uint64_t first_token, uint64_t count);

  SlotLayout layout_;
  uint64_t tokens_;
  std::span<std::byte> out_;
  std::vector<std::array<Place, 2>> places_;  // Of each layer.
  uint64_t next_ = 0;                         // The first token whose rows are missing.
};

}  // namespace kvkeep::llama
