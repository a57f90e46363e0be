#include "kvkeep/tensor.h"

#include <gtest/gtest.h>

#include <limits>

#include "kvkeep/block.h"
#include "testing/block_builder.h"
#include "testing/proves.h"

namespace kvkeep {
namespace {

constexpr auto kMax63 = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());

std::vector<std::byte> counting(size_t bytes) {
  std::vector<std::byte> out(bytes);
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(i);
  return out;
}

TEST(DTypes, NamesAndWidthsAreThoseOfTheFormat) {
  testing::proves("ENC-01", "ENC-02", "ENC-03", "ENC-04");
  size_t count = 0;
#define KVKEEP_X(id, name, bytes)                     \
  EXPECT_EQ(name_of(DType::id), name);                \
  EXPECT_EQ(element_bytes(DType::id), size_t{bytes}); \
  EXPECT_EQ(dtype_from_name(name), DType::id);        \
  ++count;
  KVKEEP_DTYPES(KVKEEP_X)
#undef KVKEEP_X
  EXPECT_EQ(count, 15u);
  for (const std::string_view other : {"", "F64", "C64", "f16", "F16 "}) {
    EXPECT_FALSE(dtype_from_name(other)) << other;
  }
}

TEST(ByteSize, IsNoneBeyond63Bits) {
  EXPECT_EQ(byte_size(DType::kF32, {}), 4u);
  EXPECT_EQ(byte_size(DType::kF16, {1, 2, 3}), 12u);
  EXPECT_EQ(byte_size(DType::kU8, {kMax63}), kMax63);
  EXPECT_EQ(byte_size(DType::kF32, {kMax63, 0}), 0u);
  EXPECT_EQ(byte_size(DType::kU16, {kMax63}), std::nullopt);
  EXPECT_EQ(byte_size(DType::kU8, {kMax63 + 1}), std::nullopt);
  EXPECT_EQ(byte_size(DType::kU8, {kMax63 + 1, 0}), std::nullopt);
  EXPECT_EQ(byte_size(DType::kU8, {1ull << 32, 1ull << 32}), std::nullopt);
  EXPECT_EQ(byte_size(DType::kU8, {1ull << 31, 1ull << 31, 4}), std::nullopt);
}

TEST(Materialize, CopiesASliceRowMajor) {
  testing::proves("ENC-05", "ENC-06", "ENC-07");
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const auto width = static_cast<int64_t>(element_bytes(dtype));
    const auto base = counting(2 * 16 * 4 * static_cast<size_t>(width));
    // Rows 3 to 10 of axis 2 of [1,2,16,4].
    const TensorView view{dtype,
                          {1, 2, 8, 4},
                          {128 * width, 64 * width, 4 * width, width},
                          base.data() + 3 * 4 * width,
                          {}};
    const auto copy = materialize(view);
    ASSERT_TRUE(copy.ok()) << copy.status().to_string();
    EXPECT_EQ(copy->dtype, dtype);
    EXPECT_EQ(copy->shape, (Shape{1, 2, 8, 4}));
    EXPECT_TRUE(copy->byte_strides.empty());
    ASSERT_EQ(copy->data.view.size(), size_t(64 * width));
    for (int64_t i = 0; i < 64 * width; ++i) {
      const int64_t head = i / (32 * width);
      EXPECT_EQ(copy->data.view[i], base[head * 64 * width + 12 * width + i % (32 * width)]);
    }
  }
}

TEST(AsTensor, SpansExactlyTheReachableBytes) {
  const auto base = counting(64);
  const TensorView backwards{DType::kU16, {3, 2}, {-8, 2}, base.data() + 40, {}};
  const auto tensor = as_tensor(backwards);
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->data.view.data(), base.data() + 24);
  EXPECT_EQ(tensor->data.view.size(), 20u);
  const auto copy = materialize(backwards);
  EXPECT_EQ(copy->data.view[0], std::byte{40});
  EXPECT_EQ(copy->data.view[4], std::byte{32});
  EXPECT_EQ(copy->data.view[11], std::byte{27});
}

TEST(AsTensor, DropsStridesThatSayNothing) {
  const auto base = counting(24);
  for (const std::vector<int64_t>& strides : {std::vector<int64_t>{}, {12, 4}, {999999, 4}}) {
    const Shape shape = strides == std::vector<int64_t>{999999, 4} ? Shape{1, 3} : Shape{2, 3};
    const auto tensor = as_tensor({DType::kF32, shape, strides, base.data(), {}});
    ASSERT_TRUE(tensor.ok());
    EXPECT_TRUE(tensor->byte_strides.empty());
    EXPECT_EQ(tensor->data.view.size(), *byte_size(DType::kF32, shape));
  }
}

TEST(AsTensor, KeepsItsMemoryAlive) {
  auto owner = std::make_shared<std::vector<std::byte>>(8);
  const std::weak_ptr<std::vector<std::byte>> watched = owner;
  auto tensor = *as_tensor({DType::kU8, {8}, {}, owner->data(), owner});
  owner.reset();
  EXPECT_FALSE(watched.expired());
  tensor = Tensor();
  EXPECT_TRUE(watched.expired());
}

TEST(AsTensor, RefusesWhatCannotBe) {
  const auto base = counting(64);
  const auto code = [&](TensorView view) { return as_tensor(view).status().code(); };
  const int64_t far = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(code({DType::kF32, {2}, {4, 4}, base.data(), {}}), Code::kInvalidArgument);
  EXPECT_EQ(code({DType::kF32, {2}, {}, nullptr, {}}), Code::kInvalidArgument);
  EXPECT_EQ(code({DType::kF32, {1ull << 62}, {}, base.data(), {}}), Code::kInvalidArgument);
  EXPECT_EQ(code({DType::kF32, {3}, {far}, base.data(), {}}), Code::kInvalidArgument);
  EXPECT_EQ(code({DType::kF32, {2, 2}, {far - 8, -far}, base.data(), {}}), Code::kInvalidArgument);
  EXPECT_EQ(code({static_cast<DType>(99), {2}, {}, base.data(), {}}), Code::kUnimplemented);
  EXPECT_EQ(code({DType::kF32, {0, 2}, {}, nullptr, {}}), Code::kOk);
  EXPECT_EQ(code({DType::kF32, {0, 2}, {far, far}, nullptr, {}}), Code::kOk);
}

TEST(TensorFromBytes, WantsExactlyTheBytesOfTheShape) {
  testing::proves("ENC-01", "ENC-10");
  const auto bytes = counting(256);
  const auto tensor = tensor_from_bytes(bytes, DType::kF32, {2, 4, 8});
  ASSERT_TRUE(tensor.ok());
  EXPECT_NE(tensor->data.view.data(), bytes.data());
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), tensor->data.view.begin()));
  EXPECT_EQ(tensor_from_bytes(bytes, DType::kF32, {2, 4, 7}).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(tensor_from_bytes(bytes, DType::kF32, {2, 4, 9}).status().code(),
            Code::kInvalidArgument);
  EXPECT_TRUE(tensor_from_bytes({}, DType::kF32, {0}).ok());
}

TEST(Pair, IsTwoElementsOfWhichNoneIsNested) {
  const Tensor tensor = testing::payload(DType::kU8, {1}, 1);
  NState state = make_pair_state(tensor, tensor);
  EXPECT_TRUE(is_pair(state));
  state.elements[0].v = Null{};
  EXPECT_TRUE(is_pair(state));
  state.elements[1].v = ElementTuple{};
  EXPECT_FALSE(is_pair(state));
  state.elements[1].v = NState{};
  EXPECT_FALSE(is_pair(state));
  EXPECT_FALSE(is_pair(NState{}));
  EXPECT_EQ(name_of(Source::kPending), "pending");
  EXPECT_EQ(name_of(Source::kDisk), "disk");
}

}  // namespace
}  // namespace kvkeep
