#include "testing/block_builder.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/bytes.h"
#include "hash/sha256.h"

namespace kvkeep::testing {
namespace {

constexpr double kTime = 1767225600.25;

// The finaliser of splitmix64: each input bit reaches every output bit.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

uint64_t payload_word(uint64_t key, uint64_t word) { return mix(key ^ word); }

TestBlock pair_block(uint64_t k, std::string name, Tensor keys, Tensor values) {
  TestBlock block{std::move(name), key_of(k), {}, {}, false};
  block.input.layers.emplace_back(make_pair_state(std::move(keys), std::move(values)));
  block.input.token_count = 64;
  block.input.model_name = std::string("m");
  block.input.layer_types = {{"KVCache"}};
  block.input.meta_states = {{MetaState{MetaValue{int64_t{64}}}}};
  return block;
}

TestBlock bytes_block(uint64_t k, uint64_t bytes) {
  const uint64_t half = bytes / 2;
  return pair_block(k, "sized", payload(DType::kU8, {half}, k),
                    payload(DType::kU8, {bytes - half}, k, half));
}

// One byte, repeated: has the size of a tensor of `bytes` bytes without the cost.
Tensor hollow(uint64_t bytes) {
  Tensor tensor = payload(DType::kU8, {1}, 0);
  tensor.shape = {bytes};
  tensor.byte_strides = {0};
  return tensor;
}

uint64_t file_bytes_with(uint64_t k, uint64_t data, Profile profile) {
  const TestBlock block = pair_block(k, "", hollow(data / 2), hollow(data - data / 2));
  const auto bytes = encoded_bytes(block.hash, block.input, test_context(profile, block));
  if (!bytes.ok()) std::abort();
  return *bytes;
}

}  // namespace

EncodeContext test_context(Profile profile, const TestBlock& block) {
  EncodeContext context;
  context.created_at = kTime;
  context.profile = profile;
  if (profile == Profile::kExtended) context.identity = block.identity;
  return context;
}

BlockHash key_of(uint64_t k) {
  std::array<std::byte, sizeof k> bytes;
  store_le(bytes.data(), k);
  Sha256 sha;
  sha.start();
  sha.add(bytes);
  const auto digest = sha.finish();
  if (!digest.ok()) std::abort();
  return *BlockHash::from_bytes(*digest);
}

std::byte payload_byte(uint64_t k, uint64_t position) {
  return static_cast<std::byte>(payload_word(mix(k), position / 8) >> (position % 8 * 8));
}

Tensor payload(DType dtype, Shape shape, uint64_t k, uint64_t position) {
  const uint64_t bytes = byte_size(dtype, shape).value_or(0);
  const auto memory = std::make_shared<std::vector<std::byte>>(bytes);
  const uint64_t key = mix(k);
  for (uint64_t i = 0; i < bytes; ++i) {
    const uint64_t at = position + i;
    (*memory)[i] = static_cast<std::byte>(payload_word(key, at / 8) >> (at % 8 * 8));
  }
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  tensor.data = {memory, *memory};
  return tensor;
}

bool is_payload(const Tensor& tensor, uint64_t k, uint64_t position) {
  const Tensor expected = payload(tensor.dtype, tensor.shape, k, position);
  const BytesView bytes = tensor.data.view;
  return tensor.byte_strides.empty() && bytes.size() == expected.data.view.size() &&
         std::equal(bytes.begin(), bytes.end(), expected.data.view.begin());
}

TestBlock blk(uint64_t k) {
  const Shape shape = {1, 4, 64, 64};
  return pair_block(k, "blk", payload(DType::kF16, shape, k),
                    payload(DType::kF16, shape, k, *byte_size(DType::kF16, shape)));
}

TestBlock sized(uint64_t k, uint64_t file_bytes, Profile profile) {
  // The header grows with the digits of the shapes and with the alignment of the data: a few rounds
  // settle.
  uint64_t data = file_bytes > 1024 ? file_bytes - 1024 : 0;
  for (int round = 0; round < 32; ++round) {
    const uint64_t actual = file_bytes_with(k, data, profile);
    if (actual == file_bytes) return bytes_block(k, data);
    if (data + file_bytes < actual) break;
    data = data + file_bytes - actual;
  }
  std::fprintf(stderr, "no block has a file of %llu bytes\n",
               static_cast<unsigned long long>(file_bytes));
  std::abort();
}

TestBlock mib(uint64_t k, uint32_t mib) {
  const Shape shape = {1, 8, mib * uint64_t{512}, 64};
  return pair_block(k, "mib", payload(DType::kBF16, shape, k),
                    payload(DType::kBF16, shape, k, *byte_size(DType::kBF16, shape)));
}

std::vector<std::byte> raw_file(std::string_view header, BytesView data) {
  std::vector<std::byte> file(8 + header.size() + data.size());
  store_le<uint64_t>(file.data(), header.size());
  if (!header.empty()) std::memcpy(file.data() + 8, header.data(), header.size());
  if (!data.empty()) std::memcpy(file.data() + 8 + header.size(), data.data(), data.size());
  return file;
}

}  // namespace kvkeep::testing
