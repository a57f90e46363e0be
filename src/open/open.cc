#include "base/guarded.h"
#include "disk/nonce.h"
#include "io/buffer_pool.h"
#include "io/posix_file_system.h"
#include "io/read_engine.h"
#include "kvkeep/block_cache.h"
#include "tier/guarded_cache.h"
#include "tier/tiered_cache.h"

namespace kvkeep {
namespace {

constexpr uint64_t kUnknownRamBytes = 4ull << 30;

uint64_t ram_limit(const Options& options, const SystemInfo& system) {
  if (options.ram_max_bytes) return *options.ram_max_bytes;
  const Result<int64_t> page = system.page_size();
  const Result<int64_t> pages = system.physical_pages();
  if (!page.ok() || !pages.ok()) return kUnknownRamBytes;
  return static_cast<uint64_t>(*page) * static_cast<uint64_t>(*pages) / 2;
}

Result<std::unique_ptr<TieredBlockCache>> open_store(Options options, Environment environment) {
  KVKEEP_TRY(validate(options));  // Before anything is created.
  if (environment.system == nullptr) environment.system = system_info();
  StoreSeams seams;
  BufferPool::Options pool;
  pool.limit_bytes = ram_limit(options, *environment.system);
  seams.pool = BufferPool::create(pool);
  if (!options.hot_only) {
    KVKEEP_TRY_ASSIGN(seams.file_system, open_posix_file_system(*options.cache_dir));
    seams.engine = make_pread_engine(seams.file_system);
    seams.nonce = random_nonce();
  }
  KVKEEP_TRY_ASSIGN(
      auto cache, TieredCache::open(std::move(options), std::move(environment), std::move(seams)));
  return guard_cache(std::move(cache));
}

}  // namespace

Result<std::unique_ptr<TieredBlockCache>> TieredBlockCache::open(Options options,
                                                                 Environment environment) {
  return guarded(Asked::kOther,
                 [&] { return open_store(std::move(options), std::move(environment)); });
}

}  // namespace kvkeep
