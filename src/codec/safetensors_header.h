// The header of a safetensors file: names, dtypes, shapes and places of tensors, and a map of
// strings (docs/contract.md B.3, B.18). Knows nothing of blocks.
//
// Threads: a plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kvkeep/status.h"
#include "kvkeep/tensor.h"

namespace kvkeep {

// The length of a header with its padding must stay below this.
inline constexpr uint64_t kHeaderBytesLimit = 100'000'000;

struct TensorEntry {
  std::string name;
  DType dtype = DType::kU8;
  Shape shape;
  uint64_t begin = 0;  // Bytes from the start of the data section.
  uint64_t end = 0;
};

class SafetensorsHeader {
 public:
  // Reads the header text of a file whose data section has `data_bytes` bytes. kDataLoss with
  // MissReason::kDamaged for whatever B.18 refuses; kResourceExhausted if there is no memory for
  // it. Cost: linear in the text, in time and memory.
  static Result<SafetensorsHeader> parse(std::string_view text, uint64_t data_bytes);

  // Behind the last tensor, without a gap. REQUIRES: a shape whose byte size does not overflow.
  void add_tensor(std::string name, DType dtype, Shape shape);
  void add_metadata(std::string key, std::string value);
  // Makes find() and value() see what was added. False if a name or a key occurs twice.
  [[nodiscard]] bool build_lookup();

  // The file's form of the header, without padding. kInvalidArgument, naming the key, if a text is
  // not UTF-8.
  Result<std::string> to_json() const;

  const std::vector<TensorEntry>& tensors() const { return tensors_; }
  const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }
  uint64_t data_bytes() const { return data_bytes_; }

  // Null if there is none.
  const TensorEntry* find(std::string_view tensor) const;
  const std::string* value(std::string_view key) const;

 private:
  std::vector<TensorEntry> tensors_;
  std::vector<std::pair<std::string, std::string>> metadata_;
  uint64_t data_bytes_ = 0;
  // Positions in the two lists above, sorted by name.
  std::vector<uint32_t> by_name_;
  std::vector<uint32_t> by_key_;
};

// What every reader of a file says when the file cannot be what it should be.
Status damaged(std::string message);

}  // namespace kvkeep
