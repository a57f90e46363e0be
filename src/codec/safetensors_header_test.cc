// Files as a reader sees them that knows JSON and the container, and nothing of kvkeep.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "codec/safetensors_header.h"
#include "testing/proves.h"
#include "testing/test_images.h"

namespace kvkeep {
namespace {

using nlohmann::json;
using testing::proves;
using testing::TestBlock;

struct Read {
  json header;
  std::string data;
};

Read read(BytesView file) {
  uint64_t length = 0;
  for (size_t i = 0; i < 8; ++i) length |= static_cast<uint64_t>(file[i]) << (8 * i);
  const std::string text(reinterpret_cast<const char*>(file.data()), file.size());
  return {json::parse(text.substr(8, length)), text.substr(8 + length)};
}

std::string bytes_of(const Read& file, const std::string& name) {
  const json& place = file.header[name]["data_offsets"];
  return file.data.substr(place[0], place[1].get<size_t>() - place[0].get<size_t>());
}

std::string bytes_of(const Tensor& tensor) {
  const BytesView view = tensor.data.view;
  return {reinterpret_cast<const char*>(view.data()), view.size()};
}

TEST(SafetensorsHeader, AnIndependentReaderFindsTensorsAndMetadata) {
  proves("ENC-08");
  const Tensor f32 = testing::payload(DType::kF32, {2, 4, 8}, 1);
  const Tensor f16 = testing::payload(DType::kF16, {3, 5}, 2);
  TestBlock block = testing::blk(1);
  block.input.layers = {make_pair_state(f32, f16)};
  const auto image = testing::encode(block);
  ASSERT_TRUE(image.ok()) << image.status().to_string();
  const Read file = read((*image)->bytes());
  EXPECT_EQ(file.header["layer_0_state_0"]["dtype"], "F32");
  EXPECT_EQ(file.header["layer_0_state_0"]["shape"], json({2, 4, 8}));
  EXPECT_EQ(bytes_of(file, "layer_0_state_0"), bytes_of(f32));
  EXPECT_EQ(file.header["layer_0_state_1"]["dtype"], "F16");
  EXPECT_EQ(file.header["layer_0_state_1"]["shape"], json({3, 5}));
  EXPECT_EQ(bytes_of(file, "layer_0_state_1"), bytes_of(f16));
  EXPECT_EQ(file.header["__metadata__"]["block_hash"], block.hash.to_hex());
  EXPECT_EQ(file.header["__metadata__"]["token_count"], "64");
  EXPECT_EQ(file.header["__metadata__"]["model_name"], "m");
  EXPECT_GT((*image)->file_bytes(), 0u);
  EXPECT_EQ((*image)->bytes().size(), (*image)->file_bytes());
}

TEST(SafetensorsHeader, WithoutMetadataThereIsNoMap) {
  proves("ENC-09");
  const Tensor tensor = testing::payload(DType::kBF16, {1, 2, 8, 4}, 3);
  SafetensorsHeader header;
  header.add_tensor("x", tensor.dtype, tensor.shape);
  const auto text = header.to_json();
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->find("__metadata__"), std::string::npos);
  const Read file = read(testing::raw_file(*text, tensor.data.view));
  EXPECT_EQ(file.header.size(), 1u);
  EXPECT_EQ(file.header["x"]["dtype"], "BF16");
  EXPECT_EQ(file.header["x"]["shape"], json({1, 2, 8, 4}));
  EXPECT_EQ(bytes_of(file, "x"), bytes_of(tensor));
}

}  // namespace
}  // namespace kvkeep
