#include "connectors/llama/slot_writer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "connectors/llama/slot_file.h"
#include "connectors/llama/slot_sample.h"
#include "kvkeep/kvkeep.h"
#include "kvkeep/layer_cut.h"

namespace kvkeep::llama {
namespace {

using Bytes = std::vector<std::byte>;

constexpr uint64_t kBlock = 64;

std::vector<LayerState> cut(const SlotFile& file, uint64_t begin, uint64_t end) {
  std::vector<LayerState> layers;
  for (const LayerState& layer : file.layers) {
    const Result<LayerState> part = cut_layer(layer, begin, end);
    EXPECT_TRUE(part.ok()) << part.status().to_string();
    if (part.ok()) layers.push_back(*part);
  }
  return layers;
}

// What a cache makes of them: row-major copies.
void materialize_all(std::vector<LayerState>& layers) {
  for (LayerState& layer : layers) {
    for (Element& element : std::get<NState>(layer).elements) {
      auto& tensor = std::get<Tensor>(element.v);
      tensor = *materialize(
          {tensor.dtype, tensor.shape, tensor.byte_strides, tensor.data.view.data(), nullptr});
    }
  }
}

LoadedBlock block_of(const SlotFile& file, uint64_t begin, uint64_t end) {
  LoadedBlock block{cut(file, begin, end), {}, {}};
  materialize_all(block.layers);
  return block;
}

std::vector<LoadedBlock> blocks_of(const SlotFile& file) {
  std::vector<LoadedBlock> blocks;
  for (uint64_t begin = 0; begin < file.tokens.size(); begin += kBlock) {
    blocks.push_back(block_of(file, begin, std::min(begin + kBlock, file.tokens.size())));
  }
  return blocks;
}

// A sample of one server, with the memory for its first `tokens` tokens to write to.
struct Draft {
  Sample sample;
  Bytes source;
  SlotFile file;
  std::vector<uint32_t> tokens;
  Bytes out;

  explicit Draft(Sample of, uint64_t held, uint64_t wanted)
      : sample(std::move(of)),
        source(sample_file(sample, held).bytes),
        file(*parse_slot_file(source, nullptr)),
        tokens(sample_tokens(wanted)),
        out(slot_file_bytes(sample.layout, wanted), std::byte{0xee}) {}

  Result<SlotWriter> begin() { return SlotWriter::begin(sample.layout, sample.slot, tokens, out); }
};

Status put_all(SlotWriter& writer, const std::vector<LoadedBlock>& blocks, uint64_t tokens) {
  for (uint64_t begin = 0; begin < tokens; begin += kBlock) {
    KVKEEP_TRY(writer.put(begin, blocks[begin / kBlock], std::min(kBlock, tokens - begin)));
  }
  return writer.finish();
}

TEST(SlotWriter, TheBlocksOfAFileMakeTheFile) {
  for (const Sample& sample : all_samples()) {
    for (const uint64_t tokens : {1, 64, 65, 200}) {
      Draft draft(sample, tokens, tokens);
      auto writer = draft.begin();
      ASSERT_TRUE(writer.ok()) << writer.status().to_string();
      const Status put = put_all(*writer, blocks_of(draft.file), tokens);
      ASSERT_TRUE(put.ok()) << put.to_string();
      ASSERT_EQ(draft.out, draft.source) << sample.name << " " << tokens;
    }
  }
}

TEST(SlotWriter, AnyPrefixIsTheFileOfSoManyTokens) {
  for (const Sample& sample : all_samples()) {
    // The rows are the same for all versions and servers.
    if (sample.layout.version != 2 || sample.layout.stream != 1) continue;
    const Draft whole(sample, 130, 130);
    const std::vector<LoadedBlock> blocks = blocks_of(whole.file);
    for (uint64_t tokens = 0; tokens <= 130; ++tokens) {
      Draft draft(sample, 0, tokens);
      auto writer = draft.begin();
      ASSERT_TRUE(writer.ok()) << writer.status().to_string();
      const Status put = put_all(*writer, blocks, tokens);
      ASSERT_TRUE(put.ok()) << put.to_string();
      ASSERT_EQ(draft.out, sample_file(sample, tokens).bytes) << sample.name << " " << tokens;
    }
  }
}

TEST(SlotWriter, BlocksThatWereInACacheMakeTheFile) {
  Options options;
  options.hot_only = true;
  options.hot_max_bytes = uint64_t{64} << 20;
  for (const Sample& sample : all_samples()) {
    if (sample.layout.stream != 1) continue;  // To a cache all servers are alike.
    SCOPED_TRACE(sample.name);
    Draft draft(sample, 200, 150);
    auto cache = TieredBlockCache::open(options);
    ASSERT_TRUE(cache.ok()) << cache.status().to_string();
    const auto keys = *chain_keys(
        draft.file.tokens,
        {.block_size = kBlock, .fields = layout_fields(draft.file.layout), .partial = true});
    for (size_t i = 0; i < keys.size(); ++i) {
      const uint64_t begin = i * kBlock, end = std::min<uint64_t>(begin + kBlock, 200);
      BlockInput input{cut(draft.file, begin, end), static_cast<uint32_t>(end - begin)};
      input.layer_types = draft.file.layer_types;
      const auto saved = (*cache)->save_block(keys[i], std::move(input));
      ASSERT_TRUE(saved.ok()) << saved.status().to_string();
    }
    std::vector<LoadedBlock> blocks;
    for (auto& hit : (*cache)->load_blocks(keys, BatchMode::kPrefix)) blocks.push_back(*hit);
    auto writer = draft.begin();
    ASSERT_TRUE(writer.ok());
    EXPECT_TRUE(put_all(*writer, blocks, 150).ok());
    EXPECT_EQ(draft.out, sample_file(sample, 150).bytes);
  }
}

TEST(SlotWriter, AFileForAnotherSlotHoldsTheSameState) {
  const std::vector<Sample> samples = all_samples();
  Draft from(samples[3], 70, 70);  // The second slot of a unified cache.
  Draft to(samples[2], 0, 70);     // The second of two streams.
  ASSERT_EQ(from.sample.layout.streams, 1u);
  ASSERT_EQ(to.sample.layout.streams, 2u);
  auto writer = to.begin();
  ASSERT_TRUE(put_all(*writer, blocks_of(from.file), 70).ok());
  EXPECT_EQ(to.out, sample_file(to.sample, 70).bytes);
}

void expect_refused(const Status& status, Code code, const std::string& said) {
  EXPECT_EQ(status.code(), code) << status.to_string();
  EXPECT_NE(status.message().find(said), std::string::npos) << status.to_string();
}

TEST(SlotWriter, MissingTokensAreSeen) {
  Draft draft(all_samples()[0], 70, 70);
  auto writer = draft.begin();
  expect_refused(writer->finish(), Code::kFailedPrecondition,
                 "70 tokens are missing, from token 0");
  ASSERT_TRUE(writer->put(0, block_of(draft.file, 0, 64), 64).ok());
  expect_refused(writer->finish(), Code::kFailedPrecondition,
                 "6 tokens are missing, from token 64");
  ASSERT_TRUE(writer->put(64, block_of(draft.file, 64, 69), 5).ok());
  expect_refused(writer->finish(), Code::kFailedPrecondition, "1 tokens are missing");
  ASSERT_TRUE(writer->put(69, block_of(draft.file, 69, 70), 1).ok());
  EXPECT_TRUE(writer->finish().ok());
}

TEST(SlotWriter, TokensAreTakenOnceAndInOrder) {
  Draft draft(all_samples()[0], 70, 70);
  const LoadedBlock block = block_of(draft.file, 0, 64);
  auto writer = draft.begin();
  expect_refused(writer->put(6, block, 64), Code::kInvalidArgument, "from token 0 is next");
  ASSERT_TRUE(writer->put(0, block, 60).ok());
  const Bytes before = draft.out;
  expect_refused(writer->put(0, block, 60), Code::kInvalidArgument, "from token 60 is next");
  expect_refused(writer->put(59, block, 1), Code::kInvalidArgument, "from token 60 is next");
  expect_refused(writer->put(60, block, 11), Code::kInvalidArgument, "10 are missing");
  expect_refused(writer->put(60, block, ~uint64_t{0}), Code::kInvalidArgument, "10 are missing");
  expect_refused(writer->put(60, block, 0), Code::kInvalidArgument, "0 tokens");
  EXPECT_EQ(draft.out, before);
}

TEST(SlotWriter, ABlockMustHoldTheTokens) {
  Draft draft(all_samples()[0], 70, 70);
  auto writer = draft.begin();
  expect_refused(writer->put(0, block_of(draft.file, 0, 8), 9), Code::kInvalidArgument,
                 "9 tokens of a block that holds 8");
}

// What is wrong with a block is found before anything of it is written.
TEST(SlotWriter, ABlockOfAnotherLayoutIsRefused) {
  const Sample sample = all_samples()[0];
  const auto refused = [&](auto change, const std::string& said) {
    Draft draft(sample, 8, 8);
    auto writer = draft.begin();
    const Bytes before = draft.out;
    LoadedBlock block = block_of(draft.file, 0, 8);
    change(block);
    expect_refused(writer->put(0, block, 8), Code::kInvalidArgument, said);
    EXPECT_EQ(draft.out, before);
  };
  using B = LoadedBlock;
  const auto values = [](B& b) -> Tensor& {
    return std::get<Tensor>(std::get<NState>(b.layers[1]).elements[1].v);
  };
  refused([](B& b) { b.layers.pop_back(); }, "a block of 1 layers for 2");
  refused([](B& b) { b.layers.clear(); }, "a block of 0 layers for 2");
  refused([](B& b) { std::swap(b.layers[0], b.layers[1]); }, "layer 0, keys");
  refused([](B& b) { b.layers[1] = placeholder_layer(); }, "layer 1, keys: F32 [1]");
  refused([](B& b) { b.layers[0] = placeholder_layer(); }, "that holds 0");
  refused([](B& b) { b.layers[1] = CacheList{}; }, "layer 1, keys: no pair");
  refused([](B& b) { b.layers[0] = TurboQuantState{}; }, "that holds 0");
  refused([](B& b) { std::get<NState>(b.layers[1]).elements.pop_back(); },
          "layer 1, keys: no pair");
  refused([&](B& b) { values(b).dtype = DType::kBF16; }, "layer 1, values: BF16 [1, 1, 8, 4]");
  refused([&](B& b) { values(b).shape = {1, 1, 8, 5}; }, "for a gapless F16 [1, 1, 8, 4]");
  refused([&](B& b) { values(b).shape = {1, 1, 9, 4}; }, "layer 1, values");
  refused(
      [&](B& b) {
        values(b) = *tensor_from_bytes(Bytes(72), DType::kF16, {1, 1, 9, 4});
      },
      "layer 1, values: F16 [1, 1, 9, 4]");
  refused([&](B& b) { values(b).shape = {1, 2, 8, 2}; }, "layer 1, values");
  refused([&](B& b) { values(b).shape = {2, 1, 4, 4}; }, "layer 1, values");
  refused([&](B& b) { values(b).shape = {8, 4}; }, "layer 1, values");
  refused([&](B& b) { values(b).data.view = values(b).data.view.first(63); }, "layer 1, values");
  refused([&](B& b) { values(b).byte_strides = {64, 64, 8, 2}; }, "layer 1, values");
}

TEST(SlotWriter, TransposedAndPlainValuesAreNotMistaken) {
  const std::vector<Sample> samples = all_samples();
  const auto transposed = std::find_if(samples.begin(), samples.end(), [](const Sample& sample) {
    return sample.layout.v_transposed;
  });
  Draft from(samples[0], 8, 8), to(*transposed, 8, 8);
  expect_refused(to.begin()->put(0, block_of(from.file, 0, 8), 8), Code::kInvalidArgument,
                 "layer 0, values");
}

TEST(SlotWriter, BeginsOnlyWithWhatCanBeWritten) {
  const auto refused = [](auto change, Code code, const std::string& said) {
    Draft draft(all_samples()[1], 8, 8);
    change(draft);
    expect_refused(draft.begin().status(), code, said);
  };
  const Code wrong = Code::kInvalidArgument;
  refused([](Draft& d) { d.out.pop_back(); }, wrong, "bytes of memory");
  refused([](Draft& d) { d.out.push_back({}); }, wrong, "bytes of memory");
  refused([](Draft& d) { d.tokens.push_back(7); }, wrong, "bytes of memory");
  refused([](Draft& d) { d.tokens[3] = 0x80000000; }, wrong, "token 3 is 2147483648");
  refused([](Draft& d) { d.sample.slot = 2; }, wrong, "slot 2 of 2");
  refused([](Draft& d) { d.sample.layout.layers.clear(); }, wrong, "layers are not known");
  refused([](Draft& d) { d.sample.layout.layers[1].k_row_bytes = 0; }, wrong, "layer 1: K of 0");
  refused([](Draft& d) { d.sample.layout.version = 3; }, Code::kUnimplemented, "version 3");
}

}  // namespace
}  // namespace kvkeep::llama
