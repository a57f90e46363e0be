// Slot files for tests, put together byte by byte as docs/llama-slots.md says: a second opinion on
// what SlotWriter writes. The state of a token does not depend on how many follow, so a sample of
// fewer tokens is what a longer one becomes when it is cut.
//
// Threads: plain values and pure functions.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "connectors/llama/slot_file.h"

namespace kvkeep::llama {

// Where a byte of a sample stands.
enum class Region : uint8_t { kFixed, kToken, kRotation, kType, kRows };

struct Sample {
  std::string name{};
  SlotLayout layout{};
  uint32_t slot = 0;
};

struct SampleFile {
  std::vector<std::byte> bytes{};
  std::vector<Region> regions{};  // Of each byte.
};

inline uint32_t sample_token(uint64_t i) { return static_cast<uint32_t>(3 + i * 7919 % 49152); }

inline std::vector<uint32_t> sample_tokens(uint64_t count) {
  std::vector<uint32_t> tokens;
  for (uint64_t i = 0; i < count; ++i) tokens.push_back(sample_token(i));
  return tokens;
}

// Byte `i` of a token's row of keys (part 0) or values (1).
inline std::byte sample_byte(size_t layer, size_t part, uint64_t token, uint64_t i) {
  uint64_t mixed = ((layer * 2 + part) * 100003 + token) * 4099 + i;
  mixed = (mixed ^ mixed >> 13) * 0x9e3779b97f4a7c15u;
  return static_cast<std::byte>(mixed >> 56);
}

class SampleBuilder {
 public:
  SampleBuilder(const Sample& sample, uint64_t tokens) : sample_(sample), tokens_(tokens) {}

  SampleFile build() {
    put_head();
    const SlotLayout& layout = sample_.layout;
    put<uint32_t>(layout.streams);
    const uint32_t stream = layout.streams > 1 ? sample_.slot : 0;
    for (uint32_t i = 0; i < layout.streams; ++i) {
      put<uint32_t>(i == stream ? static_cast<uint32_t>(tokens_) : 0);
      if (i == stream && tokens_ > 0) put_stream();
    }
    return file_;
  }

 private:
  template <typename T>
  void put(T value, Region region = Region::kFixed) {
    const size_t at = file_.bytes.size();
    file_.bytes.resize(at + sizeof(T));
    std::memcpy(file_.bytes.data() + at, &value, sizeof(T));
    file_.regions.resize(at + sizeof(T), region);
  }

  void put_head() {
    for (const char c : {'q', 's', 'g', 'g'}) put<char>(c);
    put<uint32_t>(sample_.layout.version);
    put<uint32_t>(static_cast<uint32_t>(tokens_) + 4);
    put<int32_t>(-1);
    put<int32_t>(1);
    put<uint32_t>(static_cast<uint32_t>(tokens_));
    for (uint64_t i = 0; i < tokens_; ++i) put<uint32_t>(sample_token(i), Region::kToken);
    put<uint32_t>(0);
  }

  void put_stream() {
    for (uint64_t i = 0; i < tokens_; ++i) {
      put<uint32_t>(static_cast<uint32_t>(i));
      put<uint32_t>(1);
      put<uint32_t>(sample_.slot);
    }
    put<uint32_t>(sample_.layout.v_transposed ? 1 : 0);
    put<uint32_t>(static_cast<uint32_t>(sample_.layout.layers.size()));
    if (sample_.layout.version == 4) {
      for (const uint32_t width : *sample_.layout.rotation) put<uint32_t>(width, Region::kRotation);
    }
    for (size_t i = 0; i < sample_.layout.layers.size(); ++i) {
      const LayerRows& rows = sample_.layout.layers[i];
      put<int32_t>(rows.k_type, Region::kType);
      put<uint64_t>(rows.k_row_bytes);
      put_rows(i, 0, rows.k_row_bytes);
    }
    for (size_t i = 0; i < sample_.layout.layers.size(); ++i) put_values(i);
  }

  void put_values(size_t layer) {
    const LayerRows& rows = sample_.layout.layers[layer];
    put<int32_t>(rows.v_type, Region::kType);
    if (!sample_.layout.v_transposed) {
      put<uint64_t>(rows.v_row_bytes);
      put_rows(layer, 1, rows.v_row_bytes);
      return;
    }
    put<uint32_t>(rows.v_element_bytes);
    put<uint32_t>(rows.v_rows);
    for (uint32_t row = 0; row < rows.v_rows; ++row) {
      for (uint64_t token = 0; token < tokens_; ++token) {
        for (uint32_t i = 0; i < rows.v_element_bytes; ++i) {
          put_row_byte(sample_byte(layer, 1, token, row * rows.v_element_bytes + i));
        }
      }
    }
  }

  void put_rows(size_t layer, size_t part, uint64_t row_bytes) {
    for (uint64_t token = 0; token < tokens_; ++token) {
      for (uint64_t i = 0; i < row_bytes; ++i) put_row_byte(sample_byte(layer, part, token, i));
    }
  }

  void put_row_byte(std::byte value) {
    file_.bytes.push_back(value);
    file_.regions.push_back(Region::kRows);
  }

  const Sample& sample_;
  const uint64_t tokens_;
  SampleFile file_;
};

inline SampleFile sample_file(const Sample& sample, uint64_t tokens) {
  return SampleBuilder(sample, tokens).build();
}

// Two layers that differ in width.
inline std::vector<LayerRows> sample_layers(int32_t k_type, uint32_t k_width, int32_t v_type,
                                            uint32_t v_element, bool transposed) {
  std::vector<LayerRows> layers;
  for (uint32_t i = 1; i <= 2; ++i) {
    LayerRows rows{k_type, uint64_t{k_width} * i, v_type, 0, 0, 0};
    if (transposed) {
      rows.v_element_bytes = v_element;
      rows.v_rows = 3 * i;
    } else {
      rows.v_row_bytes = uint64_t{v_element} * 2 * i;
    }
    layers.push_back(rows);
  }
  return layers;
}

// Every combination of version, layout of V, types, and servers with one slot, two slots, and two
// slots in one stream.
inline std::vector<Sample> all_samples() {
  struct Types {
    const char* name;
    int32_t k, v;
    uint32_t k_width, v_element;  // Bytes.
  };
  constexpr Types kTypes[] = {{"f16", 1, 1, 6, 2},
                              {"f32_and_bf16", 0, 30, 4, 2},
                              {"q8_0", 8, 8, 34, 34},
                              {"q8_0_and_f16", 8, 1, 34, 2},
                              {"other_types", 99, 40, 5, 3}};
  struct Server {
    const char* name;
    uint32_t streams, slot;
  };
  constexpr Server kServers[] = {
      {"one_slot", 1, 0}, {"first_of_two", 2, 0}, {"second_of_two", 2, 1}, {"unified", 1, 1}};
  std::vector<Sample> samples;
  for (const uint32_t version : {2u, 4u}) {
    for (const bool transposed : {false, true}) {
      for (const Types& types : kTypes) {
        for (const Server& server : kServers) {
          Sample sample;
          sample.name = "v" + std::to_string(version) + (transposed ? "_transposed_" : "_rows_") +
                        types.name + "_" + server.name;
          sample.slot = server.slot;
          sample.layout = {
              version, server.streams, server.streams > 1 ? server.slot : 0, transposed, {}, {}};
          if (version == 4) sample.layout.rotation = {64, 0};
          sample.layout.layers =
              sample_layers(types.k, types.k_width, types.v, types.v_element, transposed);
          samples.push_back(sample);
        }
      }
    }
  }
  return samples;
}

}  // namespace kvkeep::llama
