// TieredCache is the TieredBlockCache over one store: it puts the parts of this folder together.
//
// Threads: any thread; the destructor runs alone.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "io/file_system.h"
#include "io/read_engine.h"
#include "kvkeep/block_cache.h"
#include "tier/block_loader.h"
#include "tier/block_saver.h"
#include "tier/cache_state.h"

namespace kvkeep {

// What open/ or a test provides besides Options and Environment.
struct StoreSeams {
  std::shared_ptr<FileSystem> file_system;
  std::unique_ptr<ReadEngine> engine;
  std::shared_ptr<BufferPool> pool;
  std::string nonce;  // 16 hex characters, random per process.
};

class TieredCache final : public TieredBlockCache {
 public:
  // Defaults of `options` and `environment` are filled in. Errors as TieredBlockCache::open().
  static Result<std::unique_ptr<TieredCache>> open(Options options, Environment environment,
                                                   StoreSeams seams);
  ~TieredCache() override;

  Result<SaveOutcome> save_block(const BlockHash& key, BlockInput block) override;
  Result<std::vector<LayerState>> load_block(const BlockHash& key) override;
  Result<LoadedBlock> load_block_with_info(const BlockHash& key, bool promote = true) override;
  BatchResult load_blocks(std::span<const BlockHash> keys, BatchMode mode,
                          const LoadOptions& how = {}) override;
  size_t preload(std::span<const BlockHash> keys) override;
  bool has_block(const BlockHash& key) const override;
  Explanation why(const BlockHash& key) const override;
  std::optional<BlockMeta> block_meta(const BlockHash& key) const override;
  Result<Lease> lease(std::span<const BlockHash> keys, Duration ttl,
                      std::string_view owner) override;
  Result<bool> delete_block(const BlockHash& key, bool force = false) override;
  Result<bool> report_bad(const BlockHash& key) override;
  size_t clear_hot(HotClear how) override;
  uint64_t shrink_hot_to(uint64_t bytes, const HashSet& keep = {}) override;
  void set_hot_max_bytes(uint64_t bytes) override;
  void note_namespace(const BlockHash& root, const Namespace& fields) override;
  bool forget_block(const BlockHash& key) override;
  size_t evict_first(std::span<const BlockHash> keys) override;
  bool adopt_layer_types(std::span<const std::string> types) override;
  bool set_expected_layer_types(std::span<const std::string> types,
                                std::optional<double> turboquant_bits) override;
  size_t sweep_stale_layouts() override;
  ExpectedLayout expected_layout() const override;
  Result<size_t> clear() override;
  uint64_t enforce_size_limit() override;
  EvictionReport make_room(uint64_t incoming, std::optional<size_t> max_unlinks,
                           bool unbounded) override;
  Result<FlushReport> flush(std::optional<Duration> limit) override;
  Result<CloseReport> close(std::optional<Duration> limit) override;
  CacheStats stats() const override;
  ModelStats stats_for_model(std::string_view model_name) const override;
  std::string stats_json() const override;
  const Options& options() const override { return state_->options; }
  uint32_t pending_cap() const override { return state_->queue.max_blocks(); }
  size_t size() const override;
  uint64_t max_size() const override;
  uint64_t configured_max_size() const override;
  void set_configured_max_size(uint64_t bytes) override;
  uint64_t tracked_size() const override;
  size_t tracked_count() const override;
  std::filesystem::path block_path(const BlockHash& key) const override;
  std::string debug_string() const override;

 private:
  explicit TieredCache(std::shared_ptr<CacheState> state);
  CloseReport shut(Duration limit);
  std::vector<BlockHash> abandon_unwritten(const std::vector<BlockHash>& failed);
  void close_store(Duration deadline, bool calls_have_left);
  void refresh_file_times(Duration deadline);

  const std::shared_ptr<CacheState> state_;
  BlockSaver saver_;
  mutable BlockLoader loader_;
  Mutex close_mu_;  // Held for the whole of a close: a second caller waits for the first one's
                    // report.
  std::optional<CloseReport> report_ KVKEEP_GUARDED_BY(close_mu_);
};

}  // namespace kvkeep
