// Reads the fields of a slot file one after the other, never beyond its end, and says where it
// stands when something is wrong.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "kvkeep/status.h"
#include "kvkeep/tensor.h"

namespace kvkeep::llama {

class SlotReader {
 public:
  explicit SlotReader(BytesView bytes) : bytes_(bytes) {}

  uint64_t left() const { return bytes_.size() - at_; }

  // The next field. kInvalidArgument if the file ends before its end.
  Result<uint32_t> u32(const char* what) { return number<uint32_t>(what); }
  Result<int32_t> i32(const char* what) { return number<int32_t>(what); }
  Result<uint64_t> u64(const char* what) { return number<uint64_t>(what); }
  Result<BytesView> bytes(uint64_t count, const char* what) {
    field_ = at_;
    if (count > left()) return wrong(std::string("the file ends in ") + what);
    const BytesView taken = bytes_.subspan(at_, count);
    at_ += count;
    return taken;
  }

  // An error of the field that was read last.
  Status wrong(const std::string& what) const { return error(Code::kInvalidArgument, what); }
  Status unknown(const std::string& what) const { return error(Code::kUnimplemented, what); }

 private:
  template <typename T>
  Result<T> number(const char* what) {
    KVKEEP_TRY_ASSIGN(const BytesView taken, bytes(sizeof(T), what));
    T value;
    std::memcpy(&value, taken.data(), sizeof(T));
    return value;
  }

  Status error(Code code, const std::string& what) const {
    return Status(code, "slot file, byte " + std::to_string(field_) + ": " + what);
  }

  BytesView bytes_;
  uint64_t at_ = 0;
  uint64_t field_ = 0;  // Where the last field begins.
};

// The i-th word of `words`, which is not aligned.
template <typename T>
T word_at(BytesView words, uint64_t i) {
  T value;
  std::memcpy(&value, words.data() + i * sizeof(T), sizeof(T));
  return value;
}

}  // namespace kvkeep::llama
