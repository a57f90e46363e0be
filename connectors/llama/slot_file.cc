#include "connectors/llama/slot_file.h"

#include <algorithm>
#include <utility>

#include "connectors/llama/slot_form.h"
#include "connectors/llama/slot_reader.h"
#include "connectors/llama/slot_tokens.h"

namespace kvkeep::llama {
namespace {

// The class name of plain attention's cache, which can be cut between any two tokens.
constexpr const char* kLayerType = "KVCache";

class Parser {
 public:
  Parser(BytesView bytes, std::shared_ptr<const void> keep_alive)
      : in_(bytes), keep_alive_(std::move(keep_alive)) {}

  Result<SlotTokens> parse_tokens_only() {
    KVKEEP_TRY(parse_head());
    KVKEEP_TRY(parse_tokens());
    return SlotTokens{file_.layout.version, std::move(file_.tokens)};
  }

  Result<SlotFile> parse() {
    KVKEEP_TRY(parse_head());
    KVKEEP_TRY(parse_tokens());
    KVKEEP_TRY(parse_streams());
    if (in_.left() > 0) return beyond_end();
    return std::move(file_);
  }

 private:
  uint64_t tokens() const { return file_.tokens.size(); }

  Status parse_head() {
    KVKEEP_TRY_ASSIGN(const uint32_t magic, in_.u32("its magic number"));
    if (magic != kSlotMagic) return in_.wrong("this is no slot file of llama-server");
    KVKEEP_TRY_ASSIGN(file_.layout.version, in_.u32("its version"));
    if (!is_known_version(file_.layout.version)) {
      return in_.unknown("version " + std::to_string(file_.layout.version) +
                         " is not known (2 and 4 are)");
    }
    return Status();
  }

  Status parse_tokens() {
    KVKEEP_TRY_ASSIGN(const uint32_t count, in_.u32("the number of token words"));
    KVKEEP_TRY_ASSIGN(const BytesView words,
                      in_.bytes(uint64_t{count} * sizeof(uint32_t), "its token words"));
    if (count == 0 || word_at<int32_t>(words, 0) != kPackedMark) return take_tokens(words, 0);
    if (count < kPackedExtraWords) return in_.wrong("a packed list of tokens in too few words");
    if (word_at<int32_t>(words, 1) != kPackedForm) {
      return in_.unknown("a packed list of tokens of form " +
                         std::to_string(word_at<int32_t>(words, 1)));
    }
    const uint32_t packed = word_at<uint32_t>(words, 2);
    if (packed > count - kPackedExtraWords) {
      return in_.wrong(std::to_string(packed) + " tokens in " + std::to_string(count) + " words");
    }
    if (word_at<uint32_t>(words, kPackedExtraWords - 1 + packed) != 0) {
      return in_.unknown("a prompt with media");
    }
    if (packed != count - kPackedExtraWords) return in_.wrong("words after the list of tokens");
    return take_tokens(words.first(words.size() - sizeof(uint32_t)), kPackedExtraWords - 1);
  }

  // The words from `begin` on.
  Status take_tokens(BytesView words, uint64_t begin) {
    const uint64_t end = words.size() / sizeof(uint32_t);
    file_.tokens.reserve(end - begin);
    for (uint64_t i = begin; i < end; ++i) {
      const auto token = word_at<int32_t>(words, i);
      if (token < 0) {
        return in_.wrong("token " + std::to_string(i - begin) + " is " + std::to_string(token));
      }
      file_.tokens.push_back(static_cast<uint32_t>(token));
    }
    return Status();
  }

  // What a stream holds follows its count of cells; one without cells has nothing else.
  Status parse_streams() {
    KVKEEP_TRY_ASSIGN(file_.layout.streams, in_.u32("the number of streams"));
    if (file_.layout.streams == 0 || file_.layout.streams > kStreamsMax) {
      return in_.wrong(std::to_string(file_.layout.streams) + " streams (1 to 1024 can be)");
    }
    bool found = false;
    for (uint32_t stream = 0; stream < file_.layout.streams; ++stream) {
      KVKEEP_TRY_ASSIGN(const uint32_t cells, in_.u32("the number of cells"));
      if (cells == 0) continue;
      if (found) return in_.unknown("cells in more than one stream");
      if (cells != tokens()) {
        return in_.wrong(std::to_string(cells) + " cells for " + std::to_string(tokens()) +
                         " tokens");
      }
      found = true;
      file_.layout.stream = stream;
      KVKEEP_TRY(parse_cells());
      KVKEEP_TRY(parse_state());
    }
    return found || tokens() == 0 ? Status() : in_.wrong("tokens without cells");
  }

  Status parse_cells() {
    KVKEEP_TRY_ASSIGN(const BytesView cells, in_.bytes(tokens() * kCellBytes, "its cells"));
    const auto slot = word_at<int32_t>(cells, 2);
    for (uint64_t i = 0; i < tokens(); ++i) {
      const auto wrong = [&](const std::string& what) {
        return in_.unknown("cell " + std::to_string(i) + what);
      };
      const auto position = word_at<int32_t>(cells, 3 * i);
      if (position < 0 || static_cast<uint64_t>(position) != i) {
        return wrong(" has position " + std::to_string(position));
      }
      if (word_at<uint32_t>(cells, 3 * i + 1) != 1) return wrong(" is not of one sequence");
      if (word_at<int32_t>(cells, 3 * i + 2) != slot) return wrong(" is of another sequence");
    }
    // With a stream for each slot, the sequence is the stream's.
    const bool fits = slot >= 0 && (file_.layout.streams == 1 ||
                                    static_cast<uint32_t>(slot) == file_.layout.stream);
    if (!fits) return in_.wrong("sequence " + std::to_string(slot) + " is not of this stream");
    file_.slot = static_cast<uint32_t>(slot);
    return Status();
  }

  Status parse_state() {
    KVKEEP_TRY_ASSIGN(const uint32_t transposed, in_.u32("whether V is transposed"));
    if (transposed > 1) return in_.wrong("V is transposed or not: 1 or 0");
    file_.layout.v_transposed = transposed == 1;
    KVKEEP_TRY_ASSIGN(const uint32_t layers, in_.u32("the number of layers"));
    if (layers == 0 || layers > kLayersMax) {
      return in_.wrong(std::to_string(layers) + " layers (1 to 1024 can be)");
    }
    if (file_.layout.version >= kFirstVersionWithRotation) {
      KVKEEP_TRY_ASSIGN(const uint32_t k, in_.u32("the rotation of K"));
      KVKEEP_TRY_ASSIGN(const uint32_t v, in_.u32("the rotation of V"));
      file_.layout.rotation = {k, v};
    }
    KVKEEP_TRY(parse_keys(layers));
    KVKEEP_TRY(parse_values());
    KVKEEP_TRY(check_layout(file_.layout));
    return make_layers();
  }

  Status parse_keys(uint32_t layers) {
    for (uint32_t i = 0; i < layers; ++i) {
      LayerRows rows;
      KVKEEP_TRY_ASSIGN(rows.k_type, in_.i32("the type of K"));
      KVKEEP_TRY_ASSIGN(rows.k_row_bytes, in_.u64("the row bytes of K"));
      KVKEEP_TRY(take_rows(rows.k_row_bytes, keys_, "the rows of K"));
      file_.layout.layers.push_back(rows);
    }
    return Status();
  }

  // They come after the keys of all layers.
  Status parse_values() {
    for (LayerRows& rows : file_.layout.layers) {
      KVKEEP_TRY_ASSIGN(rows.v_type, in_.i32("the type of V"));
      if (!file_.layout.v_transposed) {
        KVKEEP_TRY_ASSIGN(rows.v_row_bytes, in_.u64("the row bytes of V"));
        KVKEEP_TRY(take_rows(rows.v_row_bytes, values_, "the rows of V"));
        continue;
      }
      KVKEEP_TRY_ASSIGN(rows.v_element_bytes, in_.u32("the element bytes of V"));
      KVKEEP_TRY_ASSIGN(rows.v_rows, in_.u32("the number of rows of V"));
      KVKEEP_TRY(take_rows(uint64_t{rows.v_element_bytes} * rows.v_rows, values_, "the rows of V"));
    }
    return Status();
  }

  Status take_rows(uint64_t row_bytes, std::vector<BytesView>& rows, const char* what) {
    if (row_bytes == 0 || row_bytes > kRowBytesMax) {
      return in_.wrong(std::to_string(row_bytes) + " bytes for each token of " + what + " (1 to " +
                       std::to_string(kRowBytesMax) + " can be)");
    }
    KVKEEP_TRY_ASSIGN(const BytesView taken, in_.bytes(row_bytes * tokens(), what));
    rows.push_back(taken);
    return Status();
  }

  Status make_layers() {
    for (size_t i = 0; i < file_.layout.layers.size(); ++i) {
      auto [keys, values] = pair_forms(file_.layout, i, tokens());
      file_.layers.emplace_back(
          make_pair_state({keys.dtype, std::move(keys.shape), {keep_alive_, keys_[i]}},
                          {values.dtype, std::move(values.shape), {keep_alive_, values_[i]}}));
    }
    file_.layer_types.assign(file_.layers.size(), kLayerType);
    return Status();
  }

  // The caches of sliding windows and of recurrent layers stand there.
  Status beyond_end() {
    const uint64_t left = in_.left();
    KVKEEP_TRY(in_.bytes(left, "its end").status());
    return in_.unknown(std::to_string(left) + " bytes of other state follow");
  }

  SlotReader in_;
  std::shared_ptr<const void> keep_alive_;
  SlotFile file_;
  std::vector<BytesView> keys_, values_;  // Of each layer.
};

}  // namespace

Result<SlotFile> parse_slot_file(BytesView bytes, std::shared_ptr<const void> keep_alive) {
  return Parser(bytes, std::move(keep_alive)).parse();
}

Result<SlotTokens> read_slot_tokens(BytesView bytes) {
  return Parser(bytes, nullptr).parse_tokens_only();
}

}  // namespace kvkeep::llama
