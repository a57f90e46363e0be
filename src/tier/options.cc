#include "kvkeep/options.h"

#include <algorithm>
#include <cmath>

#include "base/bytes.h"

namespace kvkeep {
namespace {

constexpr double kTargetShare = 0.10;  // Of RAM, for pending blocks.
constexpr double kHardShare = 0.30;
constexpr double kSoftFloor = 32;
constexpr double kCeiling = 256;
constexpr uint32_t kUnknownRam = 64;
constexpr double kMostKeptFree = 0.5;

Status refuse(std::string text) { return Status(Code::kInvalidArgument, std::move(text)); }

Status validate_texts(const Options& options) {
  if (!is_valid_utf8(options.model_name)) return refuse("model_name: not UTF-8");
  for (const std::string& type : options.layer_types.value_or(std::vector<std::string>{})) {
    if (!is_valid_utf8(type)) return refuse("layer_types: a name is not UTF-8");
  }
  for (const auto& [name, value] : options.identity) {
    if (name.empty()) return refuse("identity: a name is empty");
    if (!is_valid_utf8(name) || !is_valid_utf8(value))
      return refuse("identity: \"" + name + "\" is not UTF-8");
  }
  return {};
}

Status validate_store(const Options& options) {
  if (!options.cache_dir || options.cache_dir->empty())
    return refuse("cache_dir: missing; name a directory, or ask for hot_only");
  if (options.max_size_bytes == 0) return refuse("max_size_bytes: missing; give at least one byte");
  if (options.max_size_bytes > INT64_MAX) return refuse("max_size_bytes: beyond 2^63 - 1");
  return {};
}

}  // namespace

Status validate(const Options& options) {
  if (!options.hot_only) KVKEEP_TRY(validate_store(options));
  if (options.hot_max_bytes > INT64_MAX) return refuse("hot_max_bytes: beyond 2^63 - 1");
  if (options.flush_after && *options.flush_after <= Duration::zero())
    return refuse("flush_after: not positive; turn write_back off to write at once");
  if (options.preload_max_workers == 0)
    return refuse("preload_max_workers: 0; give at least 1, the calling thread");
  const auto& types = options.layer_types;
  if (types && options.num_layers > 0 && !types->empty() && types->size() != options.num_layers) {
    return refuse("layer_types: " + std::to_string(types->size()) + " names for num_layers " +
                  std::to_string(options.num_layers));
  }
  if (options.pending_cap == uint32_t{0}) return refuse("pending_cap: 0; give at least 1 block");
  if (options.queue_wait < Duration::zero()) return refuse("queue_wait: negative");
  if (options.close_deadline && *options.close_deadline < Duration::zero())
    return refuse("close_deadline: negative");
  if (options.reconcile_interval < Duration::zero()) return refuse("reconcile_interval: negative");
  if (options.io_deadline < Duration::zero()) return refuse("io_deadline: negative");
  if (!(options.background_reclaim >= 0 && options.background_reclaim <= kMostKeptFree))
    return refuse("background_reclaim: give a share from 0 to 0.5");
  if (options.disk_snapshot_ttl < Duration::zero()) return refuse("disk_snapshot_ttl: negative");
  if (options.pressure_warn_interval < Duration::zero())
    return refuse("pressure_warn_interval: negative");
  if (options.profile == Profile::kSeedExact) {
    if (options.require_digest)
      return refuse("require_digest: the seed-exact profile writes no digest");
    if (!options.identity.empty())
      return refuse("identity: the seed-exact profile cannot store one");
  }
  return validate_texts(options);
}

uint32_t max_pending_writes(uint64_t block_tokens, uint64_t kv_bytes_per_token,
                            const SystemInfo& system) {
  const Result<int64_t> page = system.page_size();
  const Result<int64_t> pages = system.physical_pages();
  if (!page.ok() || !pages.ok() || *page <= 0 || *pages <= 0) return kUnknownRam;
  const double ram = static_cast<double>(*page) * static_cast<double>(*pages);
  const double block =
      std::max(1.0, static_cast<double>(block_tokens) * static_cast<double>(kv_bytes_per_token));
  const double target = std::max(kSoftFloor, std::trunc(ram * kTargetShare / block));
  const double hard = std::max(1.0, std::trunc(ram * kHardShare / block));
  return static_cast<uint32_t>(std::max(1.0, std::min({kCeiling, target, hard})));
}

}  // namespace kvkeep
