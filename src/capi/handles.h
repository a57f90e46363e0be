// What the handles of c.h hold.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kvkeep/block_cache.h"
#include "kvkeep/c.h"

// NOLINTBEGIN(readability-identifier-naming)
struct kvkeep_cache {
  std::unique_ptr<kvkeep::TieredBlockCache> cache;
};

struct kvkeep_keys {
  std::vector<kvkeep::BlockHash> hashes;
  std::vector<kvkeep_key> views;  // Of `hashes`.
};

struct kvkeep_block {
  // What kvkeep_block_layer() shows of a layer.
  struct Layer {
    bool flat = false;
    std::vector<kvkeep_tensor> tensors;  // Views of `loaded`.
  };
  kvkeep::LoadedBlock loaded;
  std::vector<Layer> layers;
};

struct kvkeep_stats {
  struct Figure {
    std::string name;
    uint64_t value = 0;
  };
  std::vector<Figure> figures;
  std::string json;
};
// NOLINTEND(readability-identifier-naming)
