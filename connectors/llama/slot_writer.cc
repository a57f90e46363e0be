#include "connectors/llama/slot_writer.h"

#include <cstring>
#include <limits>
#include <string>

#include "connectors/llama/slot_form.h"

namespace kvkeep::llama {
namespace {

constexpr uint32_t kNumberMax = std::numeric_limits<int32_t>::max();  // Of a token or a sequence.
constexpr size_t kTokenAxis = 2;
constexpr const char* kPart[] = {"keys", "values"};

Status wrong(const std::string& what) { return Status(Code::kInvalidArgument, what); }

Status check_tokens(std::span<const uint32_t> tokens) {
  if (tokens.size() > kTokensMax) return wrong(std::to_string(tokens.size()) + " tokens");
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] > kNumberMax) {
      return wrong("token " + std::to_string(i) + " is " + std::to_string(tokens[i]) +
                   " (llama-server's are below 2147483648)");
    }
  }
  return Status();
}

// Writes numbers one after the other. REQUIRES: there is room.
class Cursor {
 public:
  Cursor(std::span<std::byte> out, uint64_t at) : out_(out), at_(at) {}

  template <typename T>
  void put(T value) {
    std::memcpy(out_.data() + at_, &value, sizeof(T));
    at_ += sizeof(T);
  }
  void skip(uint64_t bytes) { at_ += bytes; }
  uint64_t at() const { return at_; }

 private:
  std::span<std::byte> out_;
  uint64_t at_;
};

std::string text_of(DType dtype, const Shape& shape) {
  std::string text = std::string(name_of(dtype)) + " [";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  }
  return text + "]";
}

bool is_gapless(const Tensor& tensor, const TensorForm& form) {
  return tensor.dtype == form.dtype && tensor.shape == form.shape && tensor.byte_strides.empty() &&
         byte_size(form.dtype, form.shape) == tensor.data.view.size();
}

const Tensor* tensor_of(const LayerState& layer, size_t part) {
  const auto* state = std::get_if<NState>(&layer);
  if (state == nullptr || !is_pair(*state)) return nullptr;
  return std::get_if<Tensor>(&state->elements[part].v);
}

// 0 if that cannot be told.
uint64_t tokens_of(const LoadedBlock& block) {
  const Tensor* first = block.layers.empty() ? nullptr : tensor_of(block.layers[0], 0);
  return first != nullptr && first->shape.size() > kTokenAxis ? first->shape[kTokenAxis] : 0;
}

}  // namespace

Result<SlotWriter> SlotWriter::begin(const SlotLayout& layout, uint32_t slot,
                                     std::span<const uint32_t> tokens, std::span<std::byte> out) {
  KVKEEP_TRY(check_layout(layout));
  KVKEEP_TRY(check_tokens(tokens));
  if (slot > kNumberMax || (layout.streams > 1 && slot >= layout.streams)) {
    return wrong("slot " + std::to_string(slot) + " of " + std::to_string(layout.streams));
  }
  if (layout.layers.empty() && !tokens.empty()) {
    return wrong("the layout was learned from a file without tokens: its layers are not known");
  }
  if (const uint64_t bytes = slot_file_bytes(layout, tokens.size()); out.size() != bytes) {
    return wrong("a slot file of " + std::to_string(bytes) + " bytes in " +
                 std::to_string(out.size()) + " bytes of memory");
  }
  SlotWriter writer(layout, tokens.size(), out);
  writer.write_all_but_rows(slot, tokens);
  return writer;
}

void SlotWriter::write_all_but_rows(uint32_t slot, std::span<const uint32_t> tokens) {
  Cursor to(out_, 0);
  to.put(kSlotMagic);
  to.put(layout_.version);
  to.put(static_cast<uint32_t>(tokens_ + kPackedExtraWords));
  to.put(kPackedMark);
  to.put(kPackedForm);
  to.put(static_cast<uint32_t>(tokens_));
  for (const uint32_t token : tokens) to.put(token);
  to.put(uint32_t{0});  // Pieces of media.
  to.put(layout_.streams);
  const uint32_t stream = layout_.streams == 1 ? 0 : slot;
  for (uint32_t i = 0; i < stream; ++i) to.put(uint32_t{0});
  to.put(static_cast<uint32_t>(tokens_));
  if (tokens_ > 0) {
    for (uint64_t i = 0; i < tokens_; ++i) {
      to.put(static_cast<int32_t>(i));
      to.put(uint32_t{1});
      to.put(slot);
    }
    write_row_heads(to.at());
    to.skip(out_.size() - to.at() - (layout_.streams - stream - 1) * kCountBytes);
  }
  for (uint32_t i = stream + 1; i < layout_.streams; ++i) to.put(uint32_t{0});
}

void SlotWriter::write_row_heads(uint64_t at) {
  Cursor to(out_, at);
  to.put(uint32_t{layout_.v_transposed});
  to.put(static_cast<uint32_t>(layout_.layers.size()));
  if (layout_.rotation) to.put(*layout_.rotation);
  const auto leave_room = [&](Place& place, TensorForm form) {
    place = {form, to.at()};
    to.skip(*byte_size(form.dtype, form.shape));
  };
  places_.resize(layout_.layers.size());
  for (size_t i = 0; i < places_.size(); ++i) {
    to.put(layout_.layers[i].k_type);
    to.put(layout_.layers[i].k_row_bytes);
    leave_room(places_[i][0], pair_forms(layout_, i, tokens_)[0]);
  }
  for (size_t i = 0; i < places_.size(); ++i) {
    const LayerRows& rows = layout_.layers[i];
    to.put(rows.v_type);
    if (layout_.v_transposed) {
      to.put(rows.v_element_bytes);
      to.put(rows.v_rows);
    } else {
      to.put(rows.v_row_bytes);
    }
    leave_room(places_[i][1], pair_forms(layout_, i, tokens_)[1]);
  }
}

Status SlotWriter::put(uint64_t first_token, const LoadedBlock& block, uint64_t count) {
  if (first_token != next_) {
    return wrong("a block from token " + std::to_string(first_token) + " where that from token " +
                 std::to_string(next_) + " is next");
  }
  if (count == 0 || count > tokens_ - next_) {
    return wrong(std::to_string(count) + " tokens of a block where " +
                 std::to_string(tokens_ - next_) + " are missing");
  }
  KVKEEP_TRY(check_block(block, count));
  for (size_t layer = 0; layer < places_.size(); ++layer) {
    for (size_t part = 0; part < 2; ++part) {
      copy(places_[layer][part], *tensor_of(block.layers[layer], part), first_token, count);
    }
  }
  next_ += count;
  return Status();
}

Status SlotWriter::check_block(const LoadedBlock& block, uint64_t count) const {
  if (block.layers.size() != places_.size()) {
    return wrong("a block of " + std::to_string(block.layers.size()) + " layers for " +
                 std::to_string(places_.size()));
  }
  const uint64_t held = tokens_of(block);
  if (held < count) {
    return wrong(std::to_string(count) + " tokens of a block that holds " + std::to_string(held));
  }
  for (size_t layer = 0; layer < places_.size(); ++layer) {
    for (size_t part = 0; part < 2; ++part) {
      TensorForm form = places_[layer][part].form;
      form.shape[kTokenAxis] = held;
      const Tensor* tensor = tensor_of(block.layers[layer], part);
      if (tensor != nullptr && is_gapless(*tensor, form)) continue;
      return wrong("layer " + std::to_string(layer) + ", " + kPart[part] + ": " +
                   (tensor != nullptr ? text_of(tensor->dtype, tensor->shape) : "no pair") +
                   " for a gapless " + text_of(form.dtype, form.shape));
    }
  }
  return Status();
}

// Axis 1 are runs of tokens: one, or one for each element of transposed V.
void SlotWriter::copy(const Place& place, const Tensor& from, uint64_t first_token,
                      uint64_t count) {
  const uint64_t token_bytes = place.form.shape[3] * element_bytes(place.form.dtype);
  std::byte* to = out_.data() + place.at + first_token * token_bytes;
  const std::byte* source = from.data.view.data();
  for (uint64_t run = 0; run < place.form.shape[1]; ++run) {
    std::memcpy(to, source, count * token_bytes);
    to += tokens_ * token_bytes;
    source += from.shape[kTokenAxis] * token_bytes;
  }
}

Status SlotWriter::finish() const {
  if (next_ == tokens_) return Status();
  return Status(Code::kFailedPrecondition, "the rows of " + std::to_string(tokens_ - next_) +
                                               " tokens are missing, from token " +
                                               std::to_string(next_) + " on");
}

}  // namespace kvkeep::llama
