// One block of tests/data/seed-cache as bytes and as an image, and other files of the same block.
//
// For tests of what happens to block files, not to what is in them.
//
// Threads: pure functions, apart from reading the test data.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "codec/image.h"
#include "io/buffer_pool.h"

namespace kvkeep::testing {

inline BlockHash seed_key() {
  return *BlockHash::from_hex("381d5d94e168a810f723a90993e1a424589391db725bf0a4d9b91579f757ddc6");
}

// "3/381d….safetensors" for any file of the directory; "" if there is none.
inline std::string read_seed_file(const std::string& path) {
  std::ifstream in(std::string(KVKEEP_TEST_DATA) + "/seed-cache/" + path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// The file of seed_key(): two layers, 2,832 bytes or so.
inline std::string seed_bytes() {
  return read_seed_file("3/" + seed_key().to_hex() + ".safetensors");
}

// The same block in another file: `spaces` bytes more of padding in the header. The result is as
// valid as `file`.
inline std::string with_padding(std::string file, size_t spaces) {
  const uint64_t length = load_le<uint64_t>(file.data());
  store_le<uint64_t>(file.data(), length + spaces);
  return file.insert(8 + length, spaces, ' ');
}

// An image with these bytes, whatever they are.
inline ImagePtr image_of(const BlockHash& hash, const std::string& bytes) {
  BufferPool::Options options;
  options.limit_bytes = 64ull << 20;
  options.region_bytes = 2ull << 20;
  auto buffer = BufferPool::create(options)->allocate(bytes.size());
  EXPECT_TRUE(buffer.ok()) << buffer.status().to_string();
  std::memset(buffer->data(), 0, buffer->capacity());
  std::memcpy(buffer->data(), bytes.data(), bytes.size());
  return std::make_shared<Image>(*std::move(buffer), bytes.size(), BlockHeader{hash},
                                 std::vector<LayerState>(), 0);
}

}  // namespace kvkeep::testing
