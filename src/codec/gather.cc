#include "codec/gather.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

namespace kvkeep {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

struct Axis {
  uint64_t length;
  int64_t stride;  // Bytes.
};

// The axes of more than one element, outermost first, neighbours joined where one continues the
// other.
std::vector<Axis> joined_axes(const Tensor& source) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < source.shape.size(); ++i) {
    const Axis axis{source.shape[i], source.byte_strides[i]};
    if (axis.length == 1) continue;
    const bool continues =
        !axes.empty() && axes.back().stride == axis.stride * static_cast<int64_t>(axis.length);
    if (continues) {
      axes.back() = {axes.back().length * axis.length, axis.stride};
    } else {
      axes.push_back(axis);
    }
  }
  return axes;
}

// Writes forward and hands full pieces to the sink.
class PieceWriter {
 public:
  PieceWriter(std::byte* to, const PieceSink& sink) : at_(to), piece_(to), sink_(sink) {}

  void copy(const std::byte* from, uint64_t bytes) {
    while (bytes > 0) {
      const uint64_t n = std::min<uint64_t>(bytes, kGatherPieceBytes);
      std::memcpy(at_, from, n);
      from += n;
      bytes -= n;
      advance(n);
    }
  }

  template <size_t kWidth>
  void copy_elements(const std::byte* from, const Axis& axis) {
    for (uint64_t i = 0; i < axis.length;) {
      const uint64_t n = std::min<uint64_t>(axis.length - i, kGatherPieceBytes / kWidth);
      for (uint64_t k = 0; k < n; ++k, ++i) {
        std::memcpy(at_ + k * kWidth, from + static_cast<int64_t>(i) * axis.stride, kWidth);
      }
      advance(n * kWidth);
    }
  }

  void finish() {
    if (sink_ && at_ != piece_) sink_({piece_, at_});
    piece_ = at_;
  }

 private:
  void advance(uint64_t bytes) {
    at_ += bytes;
    if (static_cast<size_t>(at_ - piece_) >= kGatherPieceBytes) finish();
  }

  std::byte* at_;
  std::byte* piece_;
  const PieceSink& sink_;
};

// One run along the innermost axis: contiguous, or element by element.
void copy_run(PieceWriter& writer, const std::byte* from, const Axis& axis, size_t width) {
  if (axis.stride == static_cast<int64_t>(width)) return writer.copy(from, axis.length * width);
  switch (width) {
    case 1:
      return writer.copy_elements<1>(from, axis);
    case 2:
      return writer.copy_elements<2>(from, axis);
    case 4:
      return writer.copy_elements<4>(from, axis);
    default:
      return writer.copy_elements<8>(from, axis);
  }
}

// Moves `position` to the next run and returns the change of address; false after the last one.
bool next_run(const std::vector<Axis>& outer, std::vector<uint64_t>& position, int64_t& offset) {
  for (size_t i = outer.size(); i-- > 0;) {
    offset += outer[i].stride;
    if (++position[i] < outer[i].length) return true;
    offset -= outer[i].stride * static_cast<int64_t>(outer[i].length);
    position[i] = 0;
  }
  return false;
}

void gather_strided(const Tensor& source, const std::byte* first, PieceWriter& writer) {
  const size_t width = element_bytes(source.dtype);
  std::vector<Axis> axes = joined_axes(source);
  Axis run{1, static_cast<int64_t>(width)};
  if (!axes.empty()) {
    run = axes.back();
    axes.pop_back();
  }
  std::vector<uint64_t> position(axes.size(), 0);
  int64_t offset = 0;
  do {
    copy_run(writer, first + offset, run, width);
  } while (next_run(axes, position, offset));
}

}  // namespace

Result<Reach> reach_of(DType dtype, const Shape& shape, const std::vector<int64_t>& byte_strides) {
  if (byte_strides.size() != shape.size()) {
    return Status(Code::kInvalidArgument, std::to_string(byte_strides.size()) + " strides for " +
                                              std::to_string(shape.size()) + " axes");
  }
  if (!byte_size(dtype, shape)) return Status(Code::kInvalidArgument, "the shape is too large");
  Reach reach{0, static_cast<int64_t>(element_bytes(dtype))};
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return Reach{};
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto steps = static_cast<int64_t>(shape[i] - 1);
    int64_t span = 0;
    int64_t& end = byte_strides[i] < 0 ? reach.low : reach.high;
    if (__builtin_mul_overflow(steps, byte_strides[i], &span) ||
        __builtin_add_overflow(end, span, &end)) {
      return Status(Code::kInvalidArgument, "the strides reach too far");
    }
  }
  if (reach.low < -(kMax - reach.high)) {
    return Status(Code::kInvalidArgument, "the strides reach too far");
  }
  return reach;
}

Result<uint64_t> check_source(const Tensor& source) {
  if (name_of(source.dtype).empty()) {
    return Status(Code::kUnimplemented,
                  "dtype " + std::to_string(static_cast<int>(source.dtype)) + " does not exist");
  }
  const auto bytes = byte_size(source.dtype, source.shape);
  if (!bytes) return Status(Code::kInvalidArgument, "the shape is too large");
  const uint64_t held = source.data.view.size();
  uint64_t needed = *bytes;
  bool fits = held == needed;
  if (!source.byte_strides.empty()) {
    KVKEEP_TRY_ASSIGN(const Reach reach, reach_of(source.dtype, source.shape, source.byte_strides));
    needed = static_cast<uint64_t>(reach.high - reach.low);
    fits = held >= needed;
  }
  if (!fits) {
    return Status(Code::kInvalidArgument, "the tensor holds " + std::to_string(held) +
                                              " bytes, its dtype and shape ask for " +
                                              std::to_string(needed));
  }
  if (needed > 0 && source.data.view.data() == nullptr) {
    return Status(Code::kInvalidArgument, "the tensor has no data");
  }
  return *bytes;
}

void gather(const Tensor& source, std::byte* to, const PieceSink& sink) {
  const uint64_t bytes = *byte_size(source.dtype, source.shape);
  if (bytes == 0) return;
  PieceWriter writer(to, sink);
  if (source.byte_strides.empty()) {
    writer.copy(source.data.view.data(), bytes);
  } else {
    const Reach reach = *reach_of(source.dtype, source.shape, source.byte_strides);
    gather_strided(source, source.data.view.data() - reach.low, writer);
  }
  writer.finish();
}

}  // namespace kvkeep
