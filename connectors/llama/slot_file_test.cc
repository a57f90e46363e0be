#include "connectors/llama/slot_file.h"

#include <gtest/gtest.h>

#include "connectors/llama/slot_sample.h"
#include "connectors/llama/slot_writer.h"
#include "kvkeep/layer_cut.h"

namespace kvkeep::llama {
namespace {

using Bytes = std::vector<std::byte>;

constexpr uint64_t kTokens = 5;

Result<SlotFile> parse(BytesView bytes) { return parse_slot_file(bytes, nullptr); }

Bytes sample_bytes(const Sample& sample, uint64_t tokens = kTokens) {
  return sample_file(sample, tokens).bytes;
}

// The first sample: version 2, f16 rows, one stream.
Bytes plain() { return sample_bytes(all_samples()[0]); }

// Where things stand in it.
constexpr size_t kCountAt = 8, kTokensAt = 24, kMediaAt = kTokensAt + 4 * kTokens;
constexpr size_t kStreamsAt = kMediaAt + 4, kCellsAt = kStreamsAt + 8;
constexpr size_t kStateAt = kCellsAt + 12 * kTokens;

void set(Bytes& bytes, size_t at, uint32_t value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

// Exactly as much memory as there are bytes, so that reading beyond them is seen.
void expect_refused(BytesView bytes, Code code, const std::string& said) {
  const Bytes exact(bytes.begin(), bytes.end());
  const Result<SlotFile> parsed = parse(exact);
  EXPECT_EQ(parsed.status().code(), code) << parsed.status().to_string();
  EXPECT_NE(parsed.status().message().find(said), std::string::npos) << parsed.status().to_string();
}

void expect_refused(size_t at, uint32_t value, Code code, const std::string& said) {
  Bytes bytes = plain();
  set(bytes, at, value);
  expect_refused(bytes, code, said);
}

Bytes written(const SlotFile& file) {
  Bytes out(slot_file_bytes(file.layout, file.tokens.size()));
  auto writer = SlotWriter::begin(file.layout, file.slot, file.tokens, out);
  EXPECT_TRUE(writer.ok()) << writer.status().to_string();
  if (!writer.ok()) return {};
  if (!file.tokens.empty()) {
    EXPECT_TRUE(writer->put(0, LoadedBlock{file.layers, {}, {}}, file.tokens.size()).ok());
  }
  EXPECT_TRUE(writer->finish().ok());
  return out;
}

// The bytes of one token's keys or values, by the shape alone.
Bytes row_of(const Tensor& tensor, uint64_t token) {
  const uint64_t token_bytes = tensor.shape[3] * element_bytes(tensor.dtype);
  Bytes row;
  for (uint64_t run = 0; run < tensor.shape[1]; ++run) {
    const BytesView piece =
        tensor.data.view.subspan((run * tensor.shape[2] + token) * token_bytes, token_bytes);
    row.insert(row.end(), piece.begin(), piece.end());
  }
  return row;
}

void expect_rows(const LayerState& state, size_t layer) {
  const NState& pair = std::get<NState>(state);
  ASSERT_TRUE(is_pair(pair));
  for (size_t part = 0; part < 2; ++part) {
    const Tensor& tensor = std::get<Tensor>(pair.elements[part].v);
    for (uint64_t token = 0; token < kTokens; ++token) {
      const Bytes row = row_of(tensor, token);
      for (size_t i = 0; i < row.size(); ++i) {
        ASSERT_EQ(row[i], sample_byte(layer, part, token, i)) << layer << " " << part << " " << i;
      }
    }
  }
}

TEST(SlotFile, SaysWhatItsBytesSay) {
  for (const Sample& sample : all_samples()) {
    SCOPED_TRACE(sample.name);
    const Bytes bytes = sample_bytes(sample);
    const Result<SlotFile> file = parse(bytes);
    ASSERT_TRUE(file.ok()) << file.status().to_string();
    EXPECT_EQ(file->layout, sample.layout);
    EXPECT_EQ(file->layout.stream, sample.layout.stream);
    EXPECT_EQ(file->slot, sample.slot);
    EXPECT_EQ(file->tokens, sample_tokens(kTokens));
    EXPECT_EQ(file->layer_types, (std::vector<std::string>{"KVCache", "KVCache"}));
    ASSERT_EQ(file->layers.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(tokens_in(file->layers[i]), kTokens);
      EXPECT_TRUE(is_cuttable(file->layer_types[i], file->layers[i]));
      expect_rows(file->layers[i], i);
    }
  }
}

TEST(SlotFile, WithoutTokensHasStreamsButNoLayers) {
  for (const Sample& sample : all_samples()) {
    const Bytes bytes = sample_bytes(sample, 0);
    const Result<SlotFile> file = parse(bytes);
    ASSERT_TRUE(file.ok()) << file.status().to_string();
    EXPECT_EQ(file->layout.version, sample.layout.version);
    EXPECT_EQ(file->layout.streams, sample.layout.streams);
    EXPECT_TRUE(file->layers.empty() && file->layout.layers.empty() && file->tokens.empty());
    EXPECT_EQ(written(*file), bytes);
  }
}

TEST(SlotFile, ATensorKeepsTheFileAlive) {
  auto bytes = std::make_shared<Bytes>(plain());
  const std::weak_ptr<Bytes> watch = bytes;
  auto file = parse_slot_file(*bytes, bytes);
  ASSERT_TRUE(file.ok());
  bytes.reset();
  LayerState layer = file->layers[0];
  file = Status(Code::kNotFound, "");
  EXPECT_FALSE(watch.expired());
  layer = placeholder_layer();
  EXPECT_TRUE(watch.expired());
}

TEST(SlotFile, APlainListOfTokensIsRead) {
  const Bytes packed = plain();
  Bytes bytes(packed.begin(), packed.begin() + kCountAt);
  bytes.resize(kCountAt + 4);
  set(bytes, kCountAt, kTokens);
  bytes.insert(bytes.end(), packed.begin() + kTokensAt, packed.begin() + kMediaAt);
  bytes.insert(bytes.end(), packed.begin() + kStreamsAt, packed.end());
  const Result<SlotFile> file = parse(bytes);
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  EXPECT_EQ(file->tokens, sample_tokens(kTokens));
  EXPECT_EQ(written(*file), packed);
}

TEST(SlotFile, EveryTruncationIsRefused) {
  for (const Sample& sample : all_samples()) {
    const Bytes whole = sample_bytes(sample);
    for (size_t length = 0; length < whole.size(); ++length) {
      const Bytes cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length));
      ASSERT_EQ(parse(cut).status().code(), Code::kInvalidArgument) << sample.name << " " << length;
    }
  }
}

// Only what a file may say freely can change, and then the file says just that.
TEST(SlotFile, EveryFlippedBitIsRefusedOrMeansWhatItSays) {
  for (const Sample& sample : all_samples()) {
    const SampleFile whole = sample_file(sample, kTokens);
    Bytes bytes = whole.bytes;
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      const bool like_others = whole.regions[bit / 8] == Region::kRows && bit % 31 != 0;
      if (like_others) continue;  // One bit of about four bytes of the rows is enough.
      const auto mask = std::byte{1} << (bit % 8);
      bytes[bit / 8] ^= mask;
      const Result<SlotFile> file = parse(bytes);
      if (file.ok()) {
        ASSERT_NE(whole.regions[bit / 8], Region::kFixed) << sample.name << " bit " << bit;
        ASSERT_EQ(written(*file), bytes) << sample.name << " bit " << bit;
      }
      bytes[bit / 8] ^= mask;
    }
  }
}

TEST(SlotFile, NoOtherFileIsTakenForOne) {
  expect_refused({}, Code::kInvalidArgument, "byte 0: the file ends in its magic number");
  expect_refused(0, 0xaf143cd8, Code::kInvalidArgument, "no slot file");
  for (const uint32_t version : {0u, 1u, 3u, 5u}) {
    expect_refused(4, version, Code::kUnimplemented, "byte 4: version " + std::to_string(version));
  }
}

TEST(SlotFile, AListOfTokensThatIsNotWholeIsRefused) {
  const auto wrong = Code::kInvalidArgument;
  expect_refused(kCountAt, 0xffffffff, wrong, "the file ends in its token words");
  expect_refused(kCountAt, 3, wrong, "too few words");
  expect_refused(kTokensAt - 8, 2, Code::kUnimplemented, "of form 2");
  expect_refused(kTokensAt - 4, kTokens + 1, wrong, "6 tokens in 9 words");
  expect_refused(kTokensAt + 8, 0x80000000, wrong, "token 2 is -2147483648");
  expect_refused(kTokensAt + 4, 0xffffffff, wrong, "token 1 is -1");

  Bytes with_more_words = plain();
  set(with_more_words, kTokensAt - 4, kTokens - 1);
  set(with_more_words, kMediaAt - 4, 0);  // Where the media are counted then.
  expect_refused(with_more_words, wrong, "words after the list of tokens");
}

TEST(SlotFile, MediaAreNotKnown) { expect_refused(kMediaAt, 1, Code::kUnimplemented, "media"); }

TEST(SlotFile, StreamsThatCannotBeAreRefused) {
  expect_refused(kStreamsAt, 0, Code::kInvalidArgument, "0 streams");
  expect_refused(kStreamsAt, kStreamsMax + 1, Code::kInvalidArgument, "1025 streams");
  expect_refused(kStreamsAt, 2, Code::kInvalidArgument, "the file ends in the number of cells");
  expect_refused(kStreamsAt + 4, 4, Code::kInvalidArgument, "4 cells for 5 tokens");
  expect_refused(kStreamsAt + 4, 0x80000000, Code::kInvalidArgument, "2147483648 cells");

  Bytes without_cells = sample_bytes(all_samples()[0], 0);
  const Bytes head = plain();
  without_cells.insert(without_cells.begin(), head.begin(), head.begin() + kStreamsAt);
  without_cells.erase(without_cells.begin() + kStreamsAt, without_cells.end() - 8);
  expect_refused(without_cells, Code::kInvalidArgument, "tokens without cells");
}

TEST(SlotFile, CellsInTwoStreamsAreNotKnown) {
  const Sample sample = all_samples()[1];
  ASSERT_EQ(sample.layout.streams, 2u);
  Bytes bytes = sample_bytes(sample);
  set(bytes, bytes.size() - 4, 1);
  expect_refused(bytes, Code::kUnimplemented, "more than one stream");
}

TEST(SlotFile, OtherCellsAreNotKnown) {
  const auto unknown = Code::kUnimplemented;
  expect_refused(kCellsAt, 1, unknown, "cell 0 has position 1");
  expect_refused(kCellsAt + 36, 0xffffffff, unknown, "cell 3 has position -1");
  expect_refused(kCellsAt + 28, 2, unknown, "cell 2 is not of one sequence");
  expect_refused(kCellsAt + 32, 1, unknown, "cell 2 is of another sequence");
}

TEST(SlotFile, ASequenceOfAnotherStreamIsRefused) {
  Bytes bytes = sample_bytes(all_samples()[1]);
  for (uint64_t i = 0; i < kTokens; ++i) set(bytes, kCellsAt + 12 * i + 8, 1);
  expect_refused(bytes, Code::kInvalidArgument, "sequence 1 is not of this stream");
  bytes = plain();
  for (uint64_t i = 0; i < kTokens; ++i) set(bytes, kCellsAt + 12 * i + 8, 0x80000000);
  expect_refused(bytes, Code::kInvalidArgument, "sequence -2147483648");
}

TEST(SlotFile, RowsThatCannotBeAreRefused) {
  const auto wrong = Code::kInvalidArgument;
  expect_refused(kStateAt, 2, wrong, "transposed or not");
  expect_refused(kStateAt + 4, 0, wrong, "0 layers");
  expect_refused(kStateAt + 4, kLayersMax + 1, wrong, "1025 layers");
  expect_refused(kStateAt + 12, 0, wrong, "0 bytes for each token");
  expect_refused(kStateAt + 12, kRowBytesMax, wrong, "the file ends in the rows of K");
  expect_refused(kStateAt + 16, 1, wrong, "4294967302 bytes for each token");
  expect_refused(kStateAt + 8, 0, wrong, "layer 0: K of 6 bytes per token is no number of f32");
}

TEST(SlotFile, StateBeyondItsEndIsNotKnown) {
  Bytes bytes = plain();
  bytes.resize(bytes.size() + 8);
  expect_refused(bytes, Code::kUnimplemented, "8 bytes of other state follow");
}

}  // namespace
}  // namespace kvkeep::llama
