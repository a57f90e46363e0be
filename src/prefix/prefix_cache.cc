#include "kvkeep/prefix_cache.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/guarded.h"
#include "kvkeep/layer_cut.h"
#include "prefix/prefix_hold.h"
#include "prefix/prefix_state.h"

namespace kvkeep {

Result<std::unique_ptr<PrefixCache>> PrefixCache::open(BlockPool& pool, TieredBlockCache& cache,
                                                       PrefixOptions options) {
  return guarded(Asked::kOther, [&]() -> Result<std::unique_ptr<PrefixCache>> {
    if (options.lease <= Duration::zero()) {
      return Status(Code::kInvalidArgument, "lease: must be above 0");
    }
    KVKEEP_TRY_ASSIGN(PromptKeys keys, PromptKeys::open(options, pool.block_size()));
    auto state = std::make_unique<PrefixState>(pool, &cache, std::move(keys), std::move(options));
    return std::unique_ptr<PrefixCache>(new PrefixCache(std::move(state)));
  });
}

PrefixCache::PrefixCache(BlockPool& pool, TieredBlockCache* cache)
    : state_(std::make_unique<PrefixState>(pool, cache, std::nullopt, PrefixOptions{})) {}

PrefixCache::PrefixCache(std::unique_ptr<PrefixState> state) : state_(std::move(state)) {}

PrefixCache::~PrefixCache() = default;

bool PrefixState::keeps_tails() const {
  if (options.partial_tails != PartialTails::kHotOnly)
    return options.partial_tails == PartialTails::kAll;
  const Options& of_cache = cache->options();
  return of_cache.hot_only || of_cache.hot_max_bytes > 0 || of_cache.budget != nullptr;
}

bool PrefixState::ends_at_blocks() const {
  const auto types = cache->expected_layout().layer_types;
  if (!types) return false;
  return std::any_of(types->begin(), types->end(),
                     [](const std::string& type) { return !is_cuttable(type, NState{}); });
}

void PrefixState::forget(const BlockHash& hash) {
  pool.forget(hash);
  if (cache != nullptr && cache->forget_block(hash)) {
    count({{&PrefixStats::forgotten_blocks, 1}});
  }
}

BlockHash tail_parent(const KeyChain& chain, const std::optional<BlockHash>& parent) {
  if (parent) return *parent;
  if (chain.root()) return *chain.root();
  return *BlockHash::from_bytes(as_byte_span(std::string_view("root")));
}

std::string_view type_of_layer(const LoadedBlock& block, size_t i) {
  if (block.info.layer_types && i < block.info.layer_types->size())
    return (*block.info.layer_types)[i];
  const auto* state = std::get_if<NState>(&block.layers[i]);
  if (state == nullptr) return {};
  return state->class_name.empty() && is_pair(*state) ? std::string_view("KVCache")
                                                      : std::string_view(state->class_name);
}

Result<PrefixMatch> PrefixCache::match(const Prompt& prompt) {
  return guarded(Asked::kOther, [&]() -> Result<PrefixMatch> {
    KVKEEP_TRY(state_->takes_tokens());
    KVKEEP_TRY_ASSIGN(PrefixMatch match, state_->find(prompt));
    if (prompt.tokens.empty()) return match;
    state_->count({{&PrefixStats::lookups, 1},
                   {&PrefixStats::hits, match.blocks.empty() ? 0 : 1},
                   {&PrefixStats::tokens_asked, prompt.tokens.size()},
                   {&PrefixStats::tokens_matched, match.tokens}});
    return match;
  });
}

Result<std::string> PrefixCache::why(const Prompt& prompt) {
  return guarded(Asked::kOther, [&]() -> Result<std::string> {
    KVKEEP_TRY(state_->takes_tokens());
    KVKEEP_TRY_ASSIGN(PrefixMatch match, state_->find(prompt));
    return std::move(match.text);
  });
}

LoadedPrefix PrefixCache::load(const PrefixMatch& match) {
  if (!state_->takes_tokens().ok()) return {};
  return guarded_or({}, [&] {
    LoadedPrefix loaded = state_->load(match);
    state_->count({{&PrefixStats::tokens_loaded, loaded.tokens}});
    return loaded;
  });
}

Result<StoreReport> PrefixCache::store(const Prompt& prompt, const PromptState& state,
                                       std::span<const Snapshot> snapshots) {
  return guarded(Asked::kSave, [&]() -> Result<StoreReport> {
    KVKEEP_TRY(state_->takes_tokens());
    KVKEEP_TRY_ASSIGN(StoreReport report, state_->store(prompt, state, snapshots));
    state_->count({{&PrefixStats::blocks_stored, report.stored_blocks},
                   {&PrefixStats::blocks_present, report.present_blocks},
                   {&PrefixStats::stores_cut_short, report.refused.ok() ? 0 : 1},
                   {&PrefixStats::tail_tokens_skipped,
                    report.refused.ok() ? prompt.tokens.size() - report.tokens : 0}});
    return report;
  });
}

size_t PrefixCache::preload(const PrefixMatch& match) {
  return guarded_or(size_t{0}, [&]() -> size_t {
    return state_->cache == nullptr ? 0 : state_->cache->preload(keys_of(match));
  });
}

BlockTable PrefixCache::match(std::string_view request_id, std::span<const BlockHash> chain) {
  BlockTable table{std::string(request_id), {}, 0, nullptr};
  guarded_task([&] {
    if (state_->cache == nullptr) return;
    Result<Lease> lease = state_->cache->lease(chain, state_->options.lease, request_id);
    if (!lease.ok()) return;
    const std::vector<PoolKey> keys = [&] {
      std::vector<PoolKey> made;
      made.reserve(lease->size());
      for (size_t i = 0; i < lease->size(); ++i) {
        made.push_back({chain[i], state_->pool.block_size(), lease->blocks()[i].generation});
      }
      return made;
    }();
    auto hold = std::make_shared<PrefixHold>(state_->pool);
    hold->take(*std::move(lease));
    table.block_ids = hold->acquire(keys);
    table.num_tokens = table.block_ids.size() * uint64_t{state_->pool.block_size()};
    table.hold = std::move(hold);
  });
  return table;
}

size_t PrefixCache::preload_blocks(const BlockTable& table) {
  return guarded_or(size_t{0}, [&]() -> size_t {
    if (state_->cache == nullptr) return 0;
    std::vector<BlockHash> keys;
    for (const BlockId id : table.block_ids) {
      const std::optional<PoolBlock> block = state_->pool.get(id);
      if (!block || !block->hash) continue;
      if (!state_->cache->has_block(*block->hash)) break;
      keys.push_back(*block->hash);
    }
    return state_->cache->preload(keys);
  });
}

void PrefixCache::forget_incompatible(const BlockHash& hash) {
  guarded_task([&] { state_->forget(hash); });
}

PrefixStats PrefixCache::stats() const {
  PrefixStats stats;
  {
    MutexLock lock(state_->mu);
    stats = state_->counters;
  }
  stats.pool = state_->pool.stats();
  return stats;
}

std::string to_json(const PrefixStats& stats) {
  nlohmann::ordered_json out;
#define KVKEEP_X(name, help) out[#name] = stats.name;
  KVKEEP_PREFIX_COUNTERS(KVKEEP_X)
#undef KVKEEP_X
  out["pool"] = {{"max_blocks", stats.pool.max_blocks},
                 {"held_blocks", stats.pool.held_blocks},
                 {"shared_blocks", stats.pool.shared_blocks},
                 {"known_blocks", stats.pool.known_blocks},
                 {"recycled_blocks", stats.pool.recycled_blocks}};
  return out.dump();
}

}  // namespace kvkeep
