#include "disk/header_reader.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "codec/block_codec.h"

namespace kvkeep {
namespace {

constexpr uint64_t kFirstRead = kIoAlign;
constexpr uint64_t kKeptBytes = 1 << 20;

}  // namespace

Status HeaderReader::grow(uint64_t bytes) {
  const uint64_t wanted = round_up(bytes, kIoAlign);
  if (wanted <= capacity_) return {};
  std::unique_ptr<std::byte[], Free> larger(
      static_cast<std::byte*>(std::aligned_alloc(kIoAlign, wanted)));
  if (!larger) {
    return Status(Code::kResourceExhausted, MissReason::kNoMemory,
                  "no memory for a header of " + std::to_string(bytes) + " bytes");
  }
  if (buffer_) std::memcpy(larger.get(), buffer_.get(), capacity_);
  buffer_ = std::move(larger);
  capacity_ = wanted;
  return {};
}

void HeaderReader::shrink() {
  if (capacity_ <= kKeptBytes) return;
  buffer_.reset();
  capacity_ = 0;
}

Status HeaderReader::fill(ReadFile& file, uint64_t from, uint64_t to) {
  KVKEEP_TRY(grow(to));
  KVKEEP_TRY_ASSIGN(const size_t n,
                    file.pread(from, {buffer_.get() + from, round_up(to, kIoAlign) - from}));
  if (n >= to - from) return {};
  return Status(Code::kDataLoss, MissReason::kDamaged, "the file ended while it was read");
}

Result<BlockHeader> HeaderReader::read_from(ReadFile& file) {
  KVKEEP_TRY_ASSIGN(const FileStat stat, file.stat());
  constexpr uint64_t kLength = 8;
  if (stat.size < kLength) {
    return Status(Code::kDataLoss, MissReason::kDamaged,
                  "the file has " + std::to_string(stat.size) + " bytes: too short for a header");
  }
  const uint64_t first = std::min(kFirstRead, stat.size);
  KVKEEP_TRY(fill(file, 0, first));
  KVKEEP_TRY_ASSIGN(const uint64_t needed, header_bytes({buffer_.get(), kLength}, stat.size));
  if (needed > first) KVKEEP_TRY(fill(file, first, needed));
  return decode_header({buffer_.get(), needed}, stat.size);
}

Result<BlockHeader> HeaderReader::read(std::string_view path) {
  KVKEEP_TRY_ASSIGN(const std::unique_ptr<ReadFile> file, file_system_.open_read(path));
  Result<BlockHeader> header = read_from(*file);
  shrink();
  return header;
}

MissReason reason_unread(const Status& status) {
  switch (status.miss_reason().value_or(MissReason::kUnreadable)) {
    case MissReason::kVersion:
      return MissReason::kVersion;
    case MissReason::kUndigested:
      return MissReason::kUndigested;
    case MissReason::kNoMemory:
      return MissReason::kNoMemory;
    default:
      return MissReason::kUnreadable;
  }
}

}  // namespace kvkeep
