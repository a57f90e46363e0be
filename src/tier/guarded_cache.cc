#include "tier/guarded_cache.h"

#include "base/guarded.h"

namespace kvkeep {
namespace {

class GuardedCache final : public TieredBlockCache {
 public:
  explicit GuardedCache(std::unique_ptr<TieredBlockCache> cache) : cache_(std::move(cache)) {}

  Result<SaveOutcome> save_block(const BlockHash& key, BlockInput block) override {
    return guarded(Asked::kSave, [&] { return cache_->save_block(key, std::move(block)); });
  }
  Result<std::vector<LayerState>> load_block(const BlockHash& key) override {
    return guarded(Asked::kLoad, [&] { return cache_->load_block(key); });
  }
  Result<LoadedBlock> load_block_with_info(const BlockHash& key, bool promote) override {
    return guarded(Asked::kLoad, [&] { return cache_->load_block_with_info(key, promote); });
  }
  BatchResult load_blocks(std::span<const BlockHash> keys, BatchMode mode,
                          const LoadOptions& how) override {
    return guarded_or({}, [&] { return cache_->load_blocks(keys, mode, how); });
  }
  size_t preload(std::span<const BlockHash> keys) override {
    return guarded_or(0, [&] { return cache_->preload(keys); });
  }
  bool has_block(const BlockHash& key) const override {
    return guarded_or(false, [&] { return cache_->has_block(key); });
  }
  Explanation why(const BlockHash& key) const override {
    return guarded_or({{}, MissReason::kNoMemory, "out of memory"},
                      [&] { return cache_->why(key); });
  }
  std::optional<BlockMeta> block_meta(const BlockHash& key) const override {
    return guarded_or({}, [&] { return cache_->block_meta(key); });
  }
  Result<Lease> lease(std::span<const BlockHash> keys, Duration ttl,
                      std::string_view owner) override {
    return guarded(Asked::kOther, [&] { return cache_->lease(keys, ttl, owner); });
  }
  Result<bool> delete_block(const BlockHash& key, bool force) override {
    return guarded(Asked::kOther, [&] { return cache_->delete_block(key, force); });
  }
  Result<bool> report_bad(const BlockHash& key) override {
    return guarded(Asked::kOther, [&] { return cache_->report_bad(key); });
  }
  bool forget_block(const BlockHash& key) override {
    return guarded_or(false, [&] { return cache_->forget_block(key); });
  }
  size_t evict_first(std::span<const BlockHash> keys) override {
    return guarded_or(size_t{0}, [&] { return cache_->evict_first(keys); });
  }
  bool adopt_layer_types(std::span<const std::string> types) override {
    return guarded_or(false, [&] { return cache_->adopt_layer_types(types); });
  }
  bool set_expected_layer_types(std::span<const std::string> types,
                                std::optional<double> turboquant_bits) override {
    return guarded_or(false,
                      [&] { return cache_->set_expected_layer_types(types, turboquant_bits); });
  }
  size_t sweep_stale_layouts() override {
    return guarded_or(0, [&] { return cache_->sweep_stale_layouts(); });
  }
  ExpectedLayout expected_layout() const override {
    return guarded_or({}, [&] { return cache_->expected_layout(); });
  }
  size_t clear_hot(HotClear how) override {
    return guarded_or(0, [&] { return cache_->clear_hot(how); });
  }
  uint64_t shrink_hot_to(uint64_t bytes, const HashSet& keep) override {
    return guarded_or(0, [&] { return cache_->shrink_hot_to(bytes, keep); });
  }
  void set_hot_max_bytes(uint64_t bytes) override {
    guarded_task([&] { cache_->set_hot_max_bytes(bytes); });
  }
  void note_namespace(const BlockHash& root, const Namespace& fields) override {
    guarded_task([&] { cache_->note_namespace(root, fields); });
  }
  Result<size_t> clear() override {
    return guarded(Asked::kOther, [&] { return cache_->clear(); });
  }
  uint64_t enforce_size_limit() override {
    return guarded_or(0, [&] { return cache_->enforce_size_limit(); });
  }
  EvictionReport make_room(uint64_t incoming, std::optional<size_t> max_unlinks,
                           bool unbounded) override {
    return guarded_or({0, 0, incoming},
                      [&] { return cache_->make_room(incoming, max_unlinks, unbounded); });
  }
  Result<FlushReport> flush(std::optional<Duration> limit) override {
    return guarded(Asked::kOther, [&] { return cache_->flush(limit); });
  }
  Result<CloseReport> close(std::optional<Duration> limit) override {
    return guarded(Asked::kOther, [&] { return cache_->close(limit); });
  }
  CacheStats stats() const override {
    return guarded_or({}, [&] { return cache_->stats(); });
  }
  ModelStats stats_for_model(std::string_view model_name) const override {
    return guarded_or({}, [&] { return cache_->stats_for_model(model_name); });
  }
  std::string stats_json() const override {
    return guarded_or({}, [&] { return cache_->stats_json(); });
  }
  const Options& options() const override { return cache_->options(); }
  uint32_t pending_cap() const override { return cache_->pending_cap(); }
  size_t size() const override {
    return guarded_or(0, [&] { return cache_->size(); });
  }
  uint64_t max_size() const override {
    return guarded_or(0, [&] { return cache_->max_size(); });
  }
  uint64_t configured_max_size() const override {
    return guarded_or(0, [&] { return cache_->configured_max_size(); });
  }
  void set_configured_max_size(uint64_t bytes) override {
    guarded_task([&] { cache_->set_configured_max_size(bytes); });
  }
  uint64_t tracked_size() const override {
    return guarded_or(0, [&] { return cache_->tracked_size(); });
  }
  size_t tracked_count() const override {
    return guarded_or(0, [&] { return cache_->tracked_count(); });
  }
  std::filesystem::path block_path(const BlockHash& key) const override {
    return guarded_or({}, [&] { return cache_->block_path(key); });
  }
  std::string debug_string() const override {
    return guarded_or({}, [&] { return cache_->debug_string(); });
  }

 private:
  const std::unique_ptr<TieredBlockCache> cache_;
};

}  // namespace

std::unique_ptr<TieredBlockCache> guard_cache(std::unique_ptr<TieredBlockCache> cache) {
  return std::make_unique<GuardedCache>(std::move(cache));
}

}  // namespace kvkeep
