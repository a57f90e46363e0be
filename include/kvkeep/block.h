// A block: the state of a run of tokens for all layers of a model, going in and coming out.
//
// The kinds of layer state and their form on disk: docs/format.md.
//
// Threads: plain values; one thread at a time each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "kvkeep/block_hash.h"
#include "kvkeep/source.h"
#include "kvkeep/tensor.h"
#include "kvkeep/token_digest.h"

namespace kvkeep {

struct Null {};
struct Element;

// A bare nested list of elements.
struct ElementTuple {
  std::vector<Element> elements;
};

// N >= 0 elements with an optional class name. Two plain elements are a pair, usually keys and
// values.
struct NState {
  std::string class_name;
  std::vector<Element> elements;
};

// Member of an NState. Nesting is limited to 32 levels.
struct Element {
  std::variant<Null, Tensor, ElementTuple, NState> v;
};

// Ordered sub-states, each a pair or an NState. Its layer type name is "CacheList".
struct CacheList {
  std::vector<NState> subs;
};

// Named packed tensors of one TurboQuant record, in declaration order. `type` names the record.
struct PackedRecord {
  std::string type;
  std::vector<std::pair<std::string, Tensor>> fields;
};

struct TurboQuantState {
  PackedRecord key;
  PackedRecord value;
};

using LayerState = std::variant<NState, CacheList, TurboQuantState>;

// True for exactly two elements, neither of them nested.
bool is_pair(const NState& state);
NState make_pair_state(Tensor keys, Tensor values);

// What is needed to rebuild a layer's cache object, e.g. its offset: JSON scalars and lists.
struct MetaValue {
  std::variant<std::nullptr_t, bool, int64_t, double, std::string, std::vector<MetaValue>> v;
};
using MetaState = std::vector<MetaValue>;

// Where a block may be kept.
enum class Residency : uint8_t {
  kAny,      // In RAM and on disk.
  kHotOnly,  // In RAM only: it is never written, and gone when it leaves the hot tier.
};

struct BlockInput {
  std::vector<LayerState> layers{};
  uint32_t token_count = 0;
  std::string model_name{};                               // Empty: the model of the cache.
  std::optional<std::vector<std::string>> layer_types{};  // Class name of each layer's cache.
  std::optional<std::vector<MetaState>> meta_states{};    // One per layer.
  std::optional<BlockHash> parent{};                      // Key of the block before this one.
  std::optional<TokenDigest> tokens{};                    // Of the block's own tokens.
  Residency residency = Residency::kAny;
  // False: straight to disk, also where the cache keeps new blocks in RAM first.
  bool write_back = true;
};

struct BlockInfo {
  uint32_t num_layers = 0;
  uint32_t token_count = 0;
  std::string model_name{};
  uint32_t block_size = 0;
  std::string signature{};  // JSON: what must match for two caches to be interchangeable.
  std::optional<std::vector<std::string>> layer_types{};
  std::optional<std::vector<MetaState>> meta_states{};
  std::optional<BlockHash> parent{};
  std::optional<TokenDigest> tokens{};
};

struct LoadedBlock {
  std::vector<LayerState> layers{};
  BlockInfo info;
  Source source = Source::kDisk;
};

}  // namespace kvkeep
