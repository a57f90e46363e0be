#include "kvkeep/scheduler.h"

#include "base/guarded.h"
#include "open/directory_name.h"

namespace kvkeep {
namespace {

using CacheResult = Result<std::unique_ptr<TieredBlockCache>>;

Status refuse(std::string message) { return Status(Code::kInvalidArgument, std::move(message)); }

// The options' default where the model's sizes are not known.
Status set_bytes_per_token(const ModelDims& dims, Options& options) {
  if (!dims.complete() && !dims.kv_bytes_per_token) return {};
  options.kv_bytes_per_token = dims.kv_bytes(1);
  if (options.kv_bytes_per_token == 0) {
    return refuse("dims: a token of 0 bytes; give dtype_size and kv_bytes_per_token at least 1");
  }
  return {};
}

Result<Options> options_of(const SchedulerCacheConfig& config) {
  Options options;
  if (config.paged_cache_block_size == 0) {
    return refuse("paged_cache_block_size: must be at least 1 token");
  }
  KVKEEP_TRY(set_bytes_per_token(config.dims, options));
  options.cache_dir = config.paged_ssd_cache_dir;
  options.max_size_bytes = config.paged_ssd_cache_max_size;
  options.hot_max_bytes = config.hot_cache_max_size;
  options.hot_only = config.hot_cache_only;
  options.budget = config.hot_cache_budget;
  options.model_name = config.model_name;
  options.num_layers = config.expected_num_layers;
  options.block_size = config.paged_cache_block_size;
  options.block_size_tokens = config.paged_cache_block_size;
  return options;
}

CacheResult open_configured(const SchedulerCacheConfig& config, Environment environment) {
  if (!config.paged_ssd_cache_dir) return std::unique_ptr<TieredBlockCache>();
  KVKEEP_TRY_ASSIGN(Options options, options_of(config));
  return TieredBlockCache::open(std::move(options), std::move(environment));
}

CacheResult create(const CacheConfig& config, std::string_view model_name,
                   Environment environment) {
  SchedulerCacheConfig wanted;
  wanted.paged_cache_block_size = config.block_size;
  wanted.paged_ssd_cache_dir = config.paged_ssd_cache_dir;
  wanted.paged_ssd_cache_max_size = config.max_paged_ssd_cache_size;
  wanted.model_name = config.model_name;
  if (!model_name.empty()) {
    wanted.model_name = model_name;
    KVKEEP_TRY_ASSIGN(const std::string component, directory_name(model_name));
    if (wanted.paged_ssd_cache_dir) *wanted.paged_ssd_cache_dir /= component;
  }
  return open_configured(wanted, std::move(environment));
}

}  // namespace

CacheResult open_from_scheduler(const SchedulerCacheConfig& config, Environment environment) {
  return guarded(Asked::kOther, [&] { return open_configured(config, std::move(environment)); });
}

CacheResult CacheFactory::create_ssd_cache(const CacheConfig& config, std::string_view model_name,
                                           Environment environment) {
  return guarded(Asked::kOther, [&] { return create(config, model_name, std::move(environment)); });
}

Result<std::unique_ptr<BlockPool>> CacheFactory::create_block_pool(const CacheConfig& config) {
  return guarded(Asked::kOther, [&]() -> Result<std::unique_ptr<BlockPool>> {
    if (config.block_size == 0)
      return Status(Code::kInvalidArgument, "block_size: must be at least 1 token");
    if (config.max_num_blocks == 0)
      return Status(Code::kInvalidArgument, "max_num_blocks: must be at least 1");
    return std::make_unique<BlockPool>(config.block_size, config.max_num_blocks);
  });
}

}  // namespace kvkeep
