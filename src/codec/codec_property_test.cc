// Random blocks round-trip; random strides gather like the obvious loop.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstring>

#include "codec/gather.h"
#include "testing/block_compare.h"
#include "testing/test_images.h"

namespace kvkeep {
namespace {

namespace gen = rc::gen;

constexpr int kDTypeCount = 15;

int below(int limit) { return *gen::inRange(0, limit); }

DType any_dtype() { return static_cast<DType>(below(kDTypeCount)); }

std::string any_text() {
  static const std::vector<std::string> pool = {
      "", "a", "KVCache", "\u00e9", "\U0001F600", "\"\\/", std::string("\0\n\x7f", 3), "_state_0"};
  return pool[below(static_cast<int>(pool.size()))];
}

Tensor row_major() {
  Shape shape;
  for (int axes = below(4); axes > 0; --axes) shape.push_back(below(5));
  return testing::payload(any_dtype(), shape, 5, below(1000));
}

// Any strides within a base of a few hundred bytes, overlapping and backwards ones included.
Tensor strided() {
  const DType dtype = any_dtype();
  TensorView view;
  view.dtype = dtype;
  int64_t low = 0;
  int64_t high = static_cast<int64_t>(element_bytes(dtype));
  for (int axes = below(5); axes > 0; --axes) {
    const int length = 1 + below(4);
    const int64_t stride = below(41) - 20;
    view.shape.push_back(length);
    view.byte_strides.push_back(stride);
    (stride < 0 ? low : high) += stride * (length - 1);
  }
  const Tensor base = testing::payload(DType::kU8, {static_cast<uint64_t>(high - low)}, 6, 0);
  view.base = base.data.view.data() - low;
  view.keep_alive = base.data.owner;
  return *as_tensor(view);
}

Tensor any_tensor() { return below(2) == 0 ? row_major() : strided(); }

Element any_element(int depth) {
  Element element;
  const int kind = below(depth > 0 ? 8 : 6);
  if (kind == 0) return element;
  if (kind < 6) {
    element.v = any_tensor();
    return element;
  }
  std::vector<Element> children;
  for (int i = below(3); i > 0; --i) children.push_back(any_element(depth - 1));
  if (kind == 6) {
    element.v = ElementTuple{std::move(children)};
  } else {
    element.v = NState{any_text(), std::move(children)};
  }
  return element;
}

NState any_nstate() {
  NState state{any_text(), {}};
  for (int i = below(5); i > 0; --i) state.elements.push_back(any_element(3));
  return state;
}

LayerState any_layer() {
  switch (below(4)) {
    case 0: {
      CacheList list;
      for (int i = below(4); i > 0; --i) list.subs.push_back(any_nstate());
      return list;
    }
    case 1: {
      PackedRecord mse{"TurboQuantMSEState", {{"norms", any_tensor()}, {"indices", any_tensor()}}};
      return TurboQuantState{mse, mse};
    }
    default:
      return any_nstate();
  }
}

MetaValue any_meta(int depth) {
  switch (below(depth > 0 ? 7 : 6)) {
    case 0:
      return {nullptr};
    case 1:
      return {below(2) == 0};
    case 2:
      return {*gen::arbitrary<int64_t>()};
    case 3:
      return {any_text()};
    case 4:
      return {*gen::arbitrary<double>()};
    case 5:
      return {static_cast<double>(below(1000))};
    default: {
      std::vector<MetaValue> list;
      for (int i = below(3); i > 0; --i) list.push_back(any_meta(depth - 1));
      return {std::move(list)};
    }
  }
}

testing::TestBlock any_block() {
  testing::TestBlock block{"random", testing::key_of(below(1000)), {}, {}, false};
  const int layers = 1 + below(4);
  for (int i = 0; i < layers; ++i) block.input.layers.push_back(any_layer());
  block.input.token_count = 1 + below(100000);
  block.input.model_name = any_text();
  if (below(2) == 0) {
    block.input.layer_types.emplace();
    for (int i = 0; i < layers; ++i) block.input.layer_types->push_back(any_text());
  }
  if (below(2) == 0) {
    block.input.meta_states.emplace();
    for (int i = 0; i < layers; ++i) {
      MetaState meta;
      for (int k = below(5); k > 0; --k) meta.push_back(any_meta(3));
      block.input.meta_states->push_back(std::move(meta));
    }
  }
  if (below(2) == 0) block.input.parent = testing::key_of(below(1000));
  return block;
}

void check_round_trip(const testing::TestBlock& block) {
  const auto image = testing::encode(block);
  if (!image.ok()) RC_FAIL(image.status().to_string());
  RC_ASSERT(testing::difference(block.input, Image::lend(*image, Source::kPending)) == "");
  const auto decoded = testing::decode((*image)->bytes());
  if (!decoded.ok()) RC_FAIL(decoded.status().to_string());
  RC_ASSERT(testing::difference(block.input, Image::lend(*decoded, Source::kDisk)) == "");
}

TEST(CodecProperty, RandomBlocksRoundTrip) {
  EXPECT_TRUE(rc::check([] {
    for (int i = 0; i < 20; ++i) check_round_trip(any_block());
  }));
}

// The obvious loop: one element after the other, by its position along each axis.
std::vector<std::byte> naive(const Tensor& tensor) {
  const size_t width = element_bytes(tensor.dtype);
  std::vector<int64_t> strides = tensor.byte_strides;
  if (strides.empty()) {
    auto stride = static_cast<int64_t>(width);
    strides.resize(tensor.shape.size());
    for (size_t i = tensor.shape.size(); i-- > 0;) {
      strides[i] = stride;
      stride *= static_cast<int64_t>(tensor.shape[i]);
    }
  }
  int64_t first = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    if (strides[i] < 0) first -= strides[i] * static_cast<int64_t>(tensor.shape[i] - 1);
  }
  std::vector<std::byte> out(*byte_size(tensor.dtype, tensor.shape));
  for (size_t n = 0; n * width < out.size(); ++n) {
    int64_t at = first;
    size_t rest = n;
    for (size_t i = strides.size(); i-- > 0;) {
      at += strides[i] * static_cast<int64_t>(rest % tensor.shape[i]);
      rest /= tensor.shape[i];
    }
    std::memcpy(out.data() + n * width, tensor.data.view.data() + at, width);
  }
  return out;
}

// What the sink saw, joined, and the largest piece.
struct Pieces {
  std::vector<std::byte> bytes;
  size_t largest = 0;
};

Pieces gathered(const Tensor& tensor, std::vector<std::byte>& to) {
  Pieces pieces;
  to.assign(*byte_size(tensor.dtype, tensor.shape), std::byte{0xcd});
  gather(tensor, to.data(), [&](BytesView piece) {
    pieces.bytes.insert(pieces.bytes.end(), piece.begin(), piece.end());
    pieces.largest = std::max(pieces.largest, piece.size());
  });
  return pieces;
}

TEST(CodecProperty, RandomStridesGatherLikeTheObviousLoop) {
  EXPECT_TRUE(rc::check([] {
    for (int i = 0; i < 50; ++i) {
      const Tensor tensor = any_tensor();
      std::vector<std::byte> to;
      const Pieces pieces = gathered(tensor, to);
      RC_ASSERT(to == naive(tensor));
      RC_ASSERT(pieces.bytes == to);
    }
  }));
}

TEST(Gather, HandsOutLargeTensorsInPiecesThatFitTheCache) {
  const Tensor base = testing::payload(DType::kU8, {3 << 20}, 8);
  const auto view = [&](DType dtype, Shape shape, std::vector<int64_t> strides) {
    return *as_tensor({dtype, std::move(shape), std::move(strides), base.data.view.data(), {}});
  };
  for (const Tensor& tensor :
       {base, view(DType::kF32, {300, 1000}, {4, 1200}), view(DType::kU8, {900000}, {3}),
        view(DType::kF16, {2, 500, 700}, {1 << 20, 2000, 2}),
        view(DType::kI64, {9, 40000}, {8, 72}), view(DType::kBF16, {5, 200000}, {0, 4})}) {
    std::vector<std::byte> to;
    const Pieces pieces = gathered(tensor, to);
    EXPECT_TRUE(to == naive(tensor));
    EXPECT_TRUE(pieces.bytes == to);
    EXPECT_LT(pieces.largest, 2 * kGatherPieceBytes);
  }
}

}  // namespace
}  // namespace kvkeep
