// TieredBlockCache keeps KV-cache blocks in RAM and on disk and gives them back by key.
//
// It is a cache: a block that was saved may be gone when it is asked for, and callers must be able
// to compute it again. What comes back is exactly what was saved, or nothing.
//
//   kvkeep::Options options;
//   options.cache_dir = "blocks";
//   options.max_size_bytes = 10ull << 30;
//   auto cache = kvkeep::TieredBlockCache::open(options);
//   if (!cache.ok()) return cache.status();
//   auto saved = (*cache)->save_block(key, std::move(block));
//   if (auto hit = (*cache)->load_block(key); hit.ok()) use(*hit);
//
// Threads:   every method may be called from any thread. The destructor runs alone.
// Ownership: loaded tensors keep their image alive and may outlive the cache.
// Errors:    after close() every method answers kFailedPrecondition, 0, false or nothing.
// Crashes:   a block is on disk entirely or not at all. Blocks still queued are lost.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kvkeep/block.h"
#include "kvkeep/block_hash.h"
#include "kvkeep/chain_keys.h"
#include "kvkeep/environment.h"
#include "kvkeep/lease.h"
#include "kvkeep/options.h"
#include "kvkeep/stats.h"
#include "kvkeep/status.h"
#include "kvkeep/token_digest.h"

namespace kvkeep {

enum class SaveOutcome : uint8_t {
  kStored,          // Accepted into the hot tier; written later (Options::flush_after).
  kQueued,          // Accepted; on its way to disk, loadable at once.
  kWrittenInline,   // The queue stayed full, so this call wrote the file itself.
  kAlreadyPresent,  // Was there; its recency is refreshed.
};
std::string_view name_of(SaveOutcome outcome);

enum class BatchMode : uint8_t {
  kPrefix,  // Stop at the first miss: results are the hits and that miss.
  kEach,    // One result per key.
};
struct LoadOptions {
  // Blocks read from disk stay in the hot tier if there is room.
  bool promote = true;
  // Of the caller's tokens, one per key; or none. A block stored for others is a miss (kTokens).
  std::span<const TokenDigest> tokens{};
};
using BatchResult = std::vector<Result<LoadedBlock>>;

// What becomes of blocks of the hot tier that are not on disk yet.
enum class HotClear : uint8_t {
  kDiscard,  // They are gone; each counts as ssd_write_drops.
  kSpill,    // They go to the write queue; one that finds it full stays.
};

// Where a load would find a block, or why it would not. From what is known in memory.
struct Explanation {
  std::optional<Source> source;
  std::optional<MissReason> reason;
  std::string text;  // One sentence for a person.
};

struct FlushReport {
  uint64_t flushed = 0;           // Blocks written while flushing.
  std::vector<BlockHash> failed;  // Accepted blocks that could not be written.
};

struct CloseReport {
  uint64_t flushed = 0;
  std::vector<BlockHash> failed;
  std::vector<BlockHash> abandoned;  // Still queued or being written when the deadline passed.
};

struct EvictionReport {
  uint64_t evicted = 0;         // Blocks given up.
  uint64_t failed = 0;          // Files that could not be removed; they are left alone for a while.
  uint64_t deferred_bytes = 0;  // Still to go.
};

// One block as the index knows it.
struct BlockMeta {
  BlockHash hash;
  std::filesystem::path path;
  uint64_t file_size = 0;  // Bytes.
  double created_at = 0;   // Seconds since the Unix epoch.
  double last_access = 0;
  BlockInfo info;
};

// last_access becomes the clock's time.
void touch(BlockMeta& meta, const Clock& clock);
// One JSON object: hash (hex), path, file_size, token_count, created_at, last_access, num_layers,
// model_name, block_size, cache_signature; layer_cache_types, layer_meta_states and parent where
// there are any. Bytes that are not UTF-8 (of a path) become U+FFFD.
std::string to_json(const BlockMeta& meta);
// The inverse. kInvalidArgument, naming the member, if one from hash to num_layers is missing or
// any has a wrong type. Other members are ignored.
Result<BlockMeta> block_meta_from_json(std::string_view json);

// What blocks must be for a cache to serve them, as of now.
struct ExpectedLayout {
  std::string model_name;                               // Empty: any.
  uint32_t num_layers = 0;                              // 0: any.
  uint32_t block_size = 0;                              // Tokens; 0: any.
  std::optional<std::vector<std::string>> layer_types;  // Absent: any.
  std::optional<double> turboquant_bits;                // Bits per value; absent: any.
  bool is_swept = false;  // sweep_stale_layouts() has been here since the last change.
};

class TieredBlockCache {
 public:
  // Creates the directory if it is missing, takes it for this process, and reads what it holds.
  // kInvalidArgument (an option), kFailedPrecondition (another process writes here; the path is a
  // file or may not be written), kUnavailable (the system failed). Blocks on the disk.
  static Result<std::unique_ptr<TieredBlockCache>> open(Options options,
                                                        Environment environment = {});

  // Closes with Options::close_deadline if still open.
  virtual ~TieredBlockCache() = default;

  // Copies the block into one image and keeps it in the hot tier or queues it for disk. Memory
  // only, except that it may unlink a bounded number of files to make room, and that it waits
  // Options::queue_wait for a full queue and then writes the file itself, unless the disk does not
  // answer (Options::io_deadline). kInvalidArgument (key, tensor or count out of range),
  // kUnimplemented (dtype or state that cannot be stored), kFailedPrecondition (contradicts what
  // this cache is for; closed), kResourceExhausted (too large, no room, no memory, queue full). The
  // status carries the Refusal.
  virtual Result<SaveOutcome> save_block(const BlockHash& key, BlockInput block) = 0;

  // kNotFound (a miss), kDataLoss (damaged; now quarantined), kUnavailable (the read failed; the
  // file is kept). The status carries the MissReason. Reads the disk unless the block is hot or
  // pending. A block read from disk is kept in the hot tier if there is room, unless `promote` says
  // no.
  virtual Result<std::vector<LayerState>> load_block(const BlockHash& key) = 0;
  virtual Result<LoadedBlock> load_block_with_info(const BlockHash& key, bool promote = true) = 0;
  // Many blocks with one submission to the disk.
  virtual BatchResult load_blocks(std::span<const BlockHash> keys, BatchMode mode,
                                  const LoadOptions& how = {}) = 0;
  // Brings blocks that are only on disk into the hot tier, those first in `keys` first, as far as
  // it has room; nothing if they are fewer than Options::preload_min_blocks. How many it brought.
  // Reads the disk; returns when all are read. Counts as neither loads nor lookups.
  virtual size_t preload(std::span<const BlockHash> keys) = 0;

  // True if a load would have found the block a moment ago. Memory only; touches nothing.
  virtual bool has_block(const BlockHash& key) const = 0;
  // The same question with the answer's reason. Memory only; touches nothing.
  virtual Explanation why(const BlockHash& key) const = 0;
  // Holds the blocks of `keys` from the first on, up to one that a load would not find. `owner` is
  // named where the lease is in the way. kInvalidArgument unless ttl > 0. Memory only; counts as
  // neither load nor lookup.
  virtual Result<Lease> lease(std::span<const BlockHash> keys, Duration ttl,
                              std::string_view owner) = 0;
  // What the index and the file's header say about a served block; nothing for one that is only in
  // the hot tier. May read the disk.
  virtual std::optional<BlockMeta> block_meta(const BlockHash& key) const = 0;
  // Removes the block from every tier, also one that is tracked but not served. True if something
  // was removed. kFailedPrecondition if it is leased and this is not forced. kUnavailable if the
  // file could not be unlinked; it stays tracked.
  virtual Result<bool> delete_block(const BlockHash& key, bool force = false) = 0;

  // The same by the names of a generic cache: load_block(), and whether it was a hit; save_block();
  // delete_block().
  std::pair<std::optional<std::vector<LayerState>>, bool> fetch(const BlockHash& key) {
    Result<std::vector<LayerState>> layers = load_block(key);
    if (!layers.ok()) return {std::nullopt, false};
    return {*std::move(layers), true};
  }
  Status store(const BlockHash& key, BlockInput block) {
    return save_block(key, std::move(block)).status();
  }
  Result<bool> evict(const BlockHash& key) { return delete_block(key); }

  // Stops serving the block, for a caller that found it unusable although it looked right. What is
  // in memory of it goes; its file stays, counted, until it is evicted, replaced by a save, or
  // reconsidered because the expected layer types change. True if the block was served. Memory
  // only; waits for a rename or unlink of the block that is under way.
  virtual bool forget_block(const BlockHash& key) = 0;

  // Blocks that nobody will want, such as those that another build of the engine wrote: they leave
  // the disk before all others when room is needed, least recently used first, still after blocks
  // that continue them. A save or a load of a block ends it, and so does closing. Returns how many
  // of them are here. Memory only. It makes no difference to the hot tier.
  virtual size_t evict_first(std::span<const BlockHash> keys) = 0;

  // Layer types that blocks must have from now on, in place of Options::layer_types. Memory only.
  // They become the names that saves write (BufferedRotatingKVCache: RotatingKVCache); a list that
  // is empty or not UTF-8 changes nothing. Loads that are under way during a change are misses;
  // files that were not served and fit now are served again, and blocks that do not fit are served
  // until the sweep. A first save with layer types into a cache of a named model adopts them and
  // sweeps.
  //
  // Only if none are expected yet. True if they are adopted.
  virtual bool adopt_layer_types(std::span<const std::string> types) = 0;
  // In any case, and with them a TurboQuant depth in bits per value, or none. True if that changes
  // which blocks fit. A depth that is not finite changes nothing.
  virtual bool set_expected_layer_types(std::span<const std::string> types,
                                        std::optional<double> turboquant_bits = {}) = 0;
  // Stops serving, as forget_block() does, each block of the expected model whose layer types or
  // depth do not fit, but for leased ones: those wait for the next sweep. Once per change; nothing
  // while no model or no layer types are expected. Returns how many blocks that were. Memory only;
  // waits as forget_block() does.
  virtual size_t sweep_stale_layouts() = 0;
  virtual ExpectedLayout expected_layout() const = 0;

  // The engine found a loaded block unusable: out of every tier, its file is kept aside. True if
  // something was removed.
  virtual Result<bool> report_bad(const BlockHash& key) = 0;

  // Lets the hot tier go. How many blocks have left.
  virtual size_t clear_hot(HotClear how) = 0;
  // Gives up least recently used blocks of this cache's share of the hot tier until it holds at
  // most `bytes`; those in `keep` stay. Bytes freed. May wait for room in the write queue.
  virtual uint64_t shrink_hot_to(uint64_t bytes, const HashSet& keep = {}) = 0;
  // Options::hot_max_bytes from the next save or load on. No effect where a budget is shared.
  virtual void set_hot_max_bytes(uint64_t bytes) = 0;

  // Tells tools what the keys of blocks that are saved here are made of: the root of their chain
  // (KeyChain::root()) and its fields. The value of a field named "salt" is not kept. Memory only;
  // written to .kvkeep/namespaces.json later, at the latest by close(), where the latest 4096
  // namespaces stay within 1/64 of the limit. A failure is logged. Nothing in hot-only mode.
  virtual void note_namespace(const BlockHash& root, const Namespace& fields) = 0;

  // Removes every block from every tier, those not served, leased or still queued included, and
  // says how many. kUnavailable if files could not be unlinked; they stay tracked. Blocks saved
  // meanwhile may stay.
  virtual Result<size_t> clear() = 0;

  // These two may block on the disk, and evict on the calling thread. Where the limit is exceeded:
  // evicts until 90 % of it are tracked. Bytes freed.
  virtual uint64_t enforce_size_limit() = 0;
  // Evicts until `incoming` bytes more would fit, with at most `max_unlinks` files removed (default
  // Options::max_inline_unlinks_per_save) unless `unbounded`. Saves do this by themselves.
  virtual EvictionReport make_room(uint64_t incoming = 1 << 20,
                                   std::optional<size_t> max_unlinks = {},
                                   bool unbounded = false) = 0;

  // Waits until everything accepted before the call, dirty blocks of the hot tier included, is at
  // its final path, as durable as the options say. kDeadlineExceeded if `limit` passes first. Waits
  // without limit by default. Nothing to do in hot-only mode.
  virtual Result<FlushReport> flush(std::optional<Duration> limit = {}) = 0;
  // Writes what is queued, within `limit` (default Options::close_deadline), and gives the
  // directory back. Idempotent: later calls return the first report.
  virtual Result<CloseReport> close(std::optional<Duration> limit = {}) = 0;

  virtual CacheStats stats() const = 0;
  // Of the model whose name is `model_name`, but for slashes at the end, or ends with the same path
  // component, if only one does. Looks at every block.
  virtual ModelStats stats_for_model(std::string_view model_name) const = 0;
  // to_json() of stats(), and cache_dir, sizes as people read them (…_formatted), and utilization.
  virtual std::string stats_json() const = 0;
  // As they hold, defaults filled in.
  virtual const Options& options() const = 0;
  virtual uint32_t pending_cap() const = 0;  // Blocks that may wait to be written.
  virtual size_t size() const = 0;           // Blocks that can be served, every tier.
  // Bytes; the limit in force: as configured, or less where the disk is nearly full. Asks the disk
  // once in Options::disk_snapshot_ttl.
  virtual uint64_t max_size() const = 0;
  virtual uint64_t configured_max_size() const = 0;
  // In force from the next save on. Memory only; recorded for tools as note_namespace() is. No
  // effect in hot-only mode.
  virtual void set_configured_max_size(uint64_t bytes) = 0;
  virtual uint64_t tracked_size() const = 0;  // Bytes, pending blocks included.
  virtual size_t tracked_count() const = 0;   // Blocks, those not served included.
  virtual std::filesystem::path block_path(const BlockHash& key) const = 0;
  // "TieredBlockCache(dir=…, size=1.20GB/10.00GB, files=812)".
  virtual std::string debug_string() const = 0;
};

}  // namespace kvkeep
