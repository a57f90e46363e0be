#include "capi/c_options.h"

#include "capi/arguments.h"

namespace kvkeep::capi {
namespace {

constexpr size_t kFirstSize =
    offsetof(kvkeep_options, eviction_lru) + sizeof(kvkeep_options::eviction_lru);
static_assert(kFirstSize == sizeof(kvkeep_options), "padding at the end hides new fields");

std::string text_or_empty(const char* text) { return text != nullptr ? text : ""; }

Status set_blocks(const kvkeep_options& given, Options& options) {
  options.model_name = text_or_empty(given.model_name);
  options.num_layers = given.num_layers;
  options.block_size = given.block_size;
  if (given.num_layer_types > 0) {
    KVKEEP_TRY_ASSIGN(options.layer_types,
                      to_texts(given.layer_types, given.num_layer_types, "options.layer_types"));
  }
  KVKEEP_TRY_ASSIGN(options.identity,
                    to_fields(given.identity, given.num_identity, "options.identity"));
  options.require_digest = given.require_digest != 0;
  return {};
}

// Seconds: 0 leaves the default, negative is none.
Status set_times(const kvkeep_options& given, Options& options) {
  KVKEEP_TRY_ASSIGN(const Duration flush,
                    to_duration(given.flush_after_seconds, "options.flush_after_seconds"));
  if (flush > Duration::zero()) options.flush_after = flush;
  if (flush < Duration::zero()) options.flush_after.reset();
  KVKEEP_TRY_ASSIGN(const Duration wait,
                    to_duration(given.queue_wait_seconds, "options.queue_wait_seconds"));
  if (wait != Duration::zero()) options.queue_wait = std::max(wait, Duration::zero());
  KVKEEP_TRY_ASSIGN(const Duration io,
                    to_duration(given.io_deadline_seconds, "options.io_deadline_seconds"));
  if (io != Duration::zero()) options.io_deadline = std::max(io, Duration::zero());
  KVKEEP_TRY_ASSIGN(const Duration close,
                    to_duration(given.close_deadline_seconds, "options.close_deadline_seconds"));
  if (close != Duration::zero()) options.close_deadline = std::max(close, Duration::zero());
  return {};
}

Status set_sizes(const kvkeep_options& given, Options& options) {
  options.max_size_bytes = given.max_size_bytes;
  options.hot_max_bytes = given.hot_max_bytes;
  if (given.ram_max_bytes > 0) options.ram_max_bytes = given.ram_max_bytes;
  if (given.min_free_bytes > 0) options.min_free_bytes = given.min_free_bytes;
  if (given.eviction_lru != 0) options.eviction = Eviction::kLru;
  if (given.pending_cap > 0) options.pending_cap = given.pending_cap;
  if (given.preload_min_blocks > 0) options.preload_min_blocks = given.preload_min_blocks;
  if (given.preload_max_workers > 0) options.preload_max_workers = given.preload_max_workers;
  return {};
}

Result<Durability> to_durability(int32_t value) {
  switch (value) {
    case KVKEEP_DURABILITY_NONE:
      return Durability::kNone;
    case KVKEEP_DURABILITY_DATA:
      return Durability::kData;
    case KVKEEP_DURABILITY_DATA_AND_DIR:
      return Durability::kDataAndDir;
    default:
      return invalid("options.durability: " + std::to_string(value) + " is no kvkeep_durability");
  }
}

}  // namespace

Result<Options> to_options(const kvkeep_options* given) {
  KVKEEP_TRY_ASSIGN(const kvkeep_options read, read_struct(given, kFirstSize, "options"));
  Options options;
  if (read.cache_dir != nullptr) options.cache_dir = read.cache_dir;
  options.hot_only = read.hot_only != 0;
  options.write_back = read.write_through == 0;
  KVKEEP_TRY_ASSIGN(options.durability, to_durability(read.durability));
  KVKEEP_TRY(set_sizes(read, options));
  KVKEEP_TRY(set_times(read, options));
  KVKEEP_TRY(set_blocks(read, options));
  return options;
}

}  // namespace kvkeep::capi
