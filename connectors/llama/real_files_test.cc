// Files that llama-server wrote (tests/data/llama-slots/).
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "connectors/llama/slot_file.h"
#include "connectors/llama/slot_writer.h"

namespace kvkeep::llama {
namespace {

std::vector<std::byte> read(const std::string& name) {
  std::ifstream in(KVKEEP_TEST_DATA "/llama-slots/" + name, std::ios::binary);
  const std::vector<char> read{std::istreambuf_iterator<char>(in), {}};
  const BytesView bytes = std::as_bytes(std::span(read));
  return {bytes.begin(), bytes.end()};
}

void expect_same_when_written(const SlotFile& file, BytesView bytes) {
  std::vector<std::byte> out(slot_file_bytes(file.layout, file.tokens.size()));
  auto writer = SlotWriter::begin(file.layout, file.slot, file.tokens, out);
  ASSERT_TRUE(writer.ok()) << writer.status().to_string();
  const Status put = writer->put(0, LoadedBlock{file.layers, {}, {}}, file.tokens.size());
  EXPECT_TRUE(put.ok()) << put.to_string();
  EXPECT_TRUE(writer->finish().ok());
  EXPECT_TRUE(std::equal(out.begin(), out.end(), bytes.begin(), bytes.end()));
}

TEST(RealFiles, Version2WithFlashAttentionIsWrittenAsItWas) {
  const auto bytes = read("v2-f16-second-of-two.bin");
  const auto file = parse_slot_file(bytes, nullptr);
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  EXPECT_EQ(file->tokens, (std::vector<uint32_t>{504, 2365}));
  EXPECT_EQ(file->slot, 1u);
  EXPECT_EQ(file->layout.streams, 2u);
  EXPECT_EQ(layout_fields(file->layout).at("v_rows"), "f16:384 x30");
  expect_same_when_written(*file, bytes);
}

TEST(RealFiles, Version4WithoutFlashAttentionIsWrittenAsItWas) {
  const auto bytes = read("v4-q8_0-transposed.bin");
  const auto file = parse_slot_file(bytes, nullptr);
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  EXPECT_EQ(file->tokens, (std::vector<uint32_t>{504, 2365}));
  EXPECT_EQ(file->slot, 0u);
  EXPECT_EQ(file->layout.rotation, (std::array<uint32_t, 2>{64, 0}));
  EXPECT_EQ(layout_fields(file->layout).at("k_rows"), "q8_0:204 x30");
  EXPECT_EQ(layout_fields(file->layout).at("v_rows"), "f16:2*192 x30");
  expect_same_when_written(*file, bytes);
}

TEST(RealFiles, AnEmptySlotIsWrittenAsItWas) {
  const auto bytes = read("v4-empty.bin");
  const auto file = parse_slot_file(bytes, nullptr);
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  std::vector<std::byte> out(slot_file_bytes(file->layout, 0));
  ASSERT_TRUE(SlotWriter::begin(file->layout, file->slot, {}, out).ok());
  EXPECT_EQ(out, bytes);
}

}  // namespace
}  // namespace kvkeep::llama
