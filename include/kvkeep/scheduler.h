// Opening a cache from what a scheduler or a cache factory has in hand, as oMLX configures its own.
//
//   kvkeep::SchedulerCacheConfig config;
//   config.paged_ssd_cache_dir = "blocks";
//   config.model_name = "/models/m";
//   config.dims = {.num_layers = 32, .num_kv_heads = 8, .head_dim = 128};
//   auto size = kvkeep::effective_block_size(config.paged_cache_block_size, layers);
//   if (!size.ok()) return serve_uncached(size.status());
//   config.paged_cache_block_size = *size;
//   auto cache = kvkeep::open_from_scheduler(config);
//
// Threads: any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvkeep/block_cache.h"
#include "kvkeep/block_pool.h"

namespace kvkeep {

// The sizes in a model's configuration; 0: not known.
struct ModelDims {
  uint32_t num_layers = 0;
  uint32_t num_kv_heads = 0;  // If not known: num_attention_heads.
  uint32_t head_dim = 0;      // If not known: hidden_size / num_attention_heads.
  uint32_t dtype_size = 2;    // Bytes of an element.
  // Of all layers together, where they do not keep one key and one value for each head.
  std::optional<uint64_t> kv_bytes_per_token;
  uint32_t num_attention_heads = 0;
  uint32_t hidden_size = 0;

  // Layers, heads and head dimension are known, or follow from what is.
  bool complete() const;
  // Bytes of so many tokens' keys and values, at most 2^64 - 1. 0 if not complete, unless
  // kv_bytes_per_token is given.
  uint64_t kv_bytes(uint64_t tokens) const;
};

// The cache of one layer, as far as the size of blocks depends on it.
struct LayerCache {
  std::string class_name;           // "KVCache", "RotatingKVCache", …
  uint32_t window = 0;              // Tokens; of rotating caches.
  std::vector<LayerCache> parts{};  // Of a CacheList.
};

// Tokens of a full block for a model with these layers, those inside lists included. With rotating
// layers their window, or its smallest multiple of at least 512; else, with an ArraysCache, at
// least 2048, so that cached and uncached prompts are computed in the same steps; else as
// configured. kInvalidArgument for a size or a window of 0, and if windows differ: such a model
// cannot be cached.
Result<uint32_t> effective_block_size(uint32_t configured, std::span<const LayerCache> layers);

// What is empty or 0 is not checked or off, as in Options.
struct SchedulerCacheConfig {
  uint32_t paged_cache_block_size = 256;  // Tokens, as effective_block_size() says. At least 1.
  // Without one there is no cache, not even in RAM.
  std::optional<std::filesystem::path> paged_ssd_cache_dir;
  uint64_t paged_ssd_cache_max_size = 100ull << 30;  // Bytes.
  uint64_t hot_cache_max_size = 0;                   // Bytes.
  bool hot_cache_only = false;                       // No disk; the directory is not touched.
  std::shared_ptr<HotBudget> hot_cache_budget;
  std::string model_name;
  ModelDims dims;  // For how many blocks may wait to be written; 200,000 bytes a token if unknown.
  uint32_t expected_num_layers = 0;
};

// A null pointer without a directory. kInvalidArgument naming a member; else as
// TieredBlockCache::open(). Blocks on the disk.
Result<std::unique_ptr<TieredBlockCache>> open_from_scheduler(const SchedulerCacheConfig& config,
                                                              Environment environment = {});

struct CacheConfig {
  uint32_t block_size = 64;        // Tokens; at least 1.
  uint32_t max_num_blocks = 1024;  // Of the pool, which grows as they are used; at least 1.
  std::optional<std::filesystem::path> paged_ssd_cache_dir;
  uint64_t max_paged_ssd_cache_size = 100ull << 30;  // Bytes.
  std::string model_name;                            // Of a directory that models share.
};

class CacheFactory {
 public:
  // With a `model_name`, the cache of that model in a directory of its own below the configured
  // one. Its name is the model's; what is neither a letter, a digit, "-", "_" nor a "." inside is
  // written as %XX, and a long name ends in a digest, so none leads out of the configured directory
  // and no two models share one. A null pointer without a directory. Errors and blocking as
  // open_from_scheduler().
  static Result<std::unique_ptr<TieredBlockCache>> create_ssd_cache(
      const CacheConfig& config, std::string_view model_name = {}, Environment environment = {});
  // The pool for a PrefixCache on that cache. kInvalidArgument naming a member.
  static Result<std::unique_ptr<BlockPool>> create_block_pool(const CacheConfig& config);
};

}  // namespace kvkeep
