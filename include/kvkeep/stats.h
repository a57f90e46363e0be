// Counters of a cache: one table of names, used by C++, Python, tools and documents alike.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "kvkeep/reason.h"
#include "kvkeep/source.h"

namespace kvkeep {

// Times from the call to the block, of loads from one source.
struct LoadTimes {
  // A load counts in the first bucket whose bound it does not exceed, or in the last.
  static constexpr std::array<uint64_t, 11> kBoundsMicros = {
      1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576};
  std::array<uint64_t, kBoundsMicros.size() + 1> buckets{};
  uint64_t count = 0;
  uint64_t total_ns = 0;

  void add(uint64_t ns);
};

// X(name, help): events since open.
#define KVKEEP_COUNTERS(X)                                                                \
  X(lookups, "blocks asked for by a load; equals load_hits plus all of miss_reason")      \
  X(load_hits, "loads that returned a block")                                             \
  X(load_hits_hot, "of these, from the hot tier")                                         \
  X(load_hits_pending, "of these, from a block still waiting to be written")              \
  X(load_hits_disk, "of these, read from disk and verified")                              \
  X(unverified_loads, "of these, from files without a digest")                            \
  X(hits, "loads that returned a block plus saves of a block already present")            \
  X(load_misses, "loads that returned nothing; the sum of miss_reason")                   \
  X(misses, "loads that found nothing")                                                   \
  X(loads, "blocks returned by loads")                                                    \
  X(saves, "blocks accepted")                                                             \
  X(saves_present, "saves of a block already present")                                    \
  X(saves_persisted, "files that reached their final name")                               \
  X(save_rejected_incompatible, "saves that contradict what the cache is for")            \
  X(ssd_inline_write_fallbacks, "saves that wrote their own file: the queue stayed full") \
  X(writer_restarts, "exceptions in the writer; each cost the block being written")       \
  X(ssd_write_drops, "accepted blocks dropped before they were written")                  \
  X(writes_cancelled, "queued writes cancelled by delete or eviction")                    \
  X(hot_cache_hits, "loads from the hot tier")                                            \
  X(hot_cache_evictions, "blocks that left the hot tier to make room")                    \
  X(hot_cache_promotions, "blocks kept in the hot tier after a read")                     \
  X(preload_calls, "preloads that read something")                                        \
  X(preload_blocks_loaded, "blocks that preloads brought into the hot tier")              \
  X(preload_time_ms, "time spent in these, in milliseconds, rounded up")                  \
  X(reported_bad, "blocks that a caller found unusable")                                  \
  X(errors, "damaged blocks, failed writes and refused layer states")                     \
  X(load_transient_errors, "reads failed by the system; the file was kept")               \
  X(evictions, "files removed to make room")                                              \
  X(evict_unlink_failures, "files that could not be removed to make room")                \
  X(quarantined, "damaged files moved aside or deleted")                                  \
  X(misaligned_tensors, "tensors that had to be copied because they were not aligned")    \
  X(bytes_written, "file bytes of saves_persisted")                                       \
  X(bytes_read, "file bytes read by loads")                                               \
  X(temp_files_removed, "leftover temporary files removed at open")

// X(name, help): state at the moment of the snapshot.
#define KVKEEP_GAUGES(X)                                                             \
  X(num_files, "block files tracked, of every model")                                \
  X(num_blocks, "blocks this cache can serve")                                       \
  X(total_size_bytes, "bytes tracked: files, pending blocks, directories, .kvkeep")  \
  X(file_bytes, "sum of the lengths of block files")                                 \
  X(allocated_bytes, "bytes that files and directories occupy on disk now")          \
  X(max_size_bytes, "the limit in force")                                            \
  X(configured_max_size_bytes, "the limit as configured")                            \
  X(free_bytes, "free bytes of the disk, by the last reading")                       \
  X(min_free_bytes, "bytes of the disk that stay free for others")                   \
  X(incompatible_files, "files tracked but not served")                              \
  X(foreign_files, "files in the store that are not kvkeep's, at the last look")     \
  X(foreign_bytes, "their bytes; not part of the limit")                             \
  X(quarantine_bytes, "bytes of damaged files kept aside")                           \
  X(pending_blocks, "blocks waiting to be written")                                  \
  X(pending_bytes, "RAM of their images")                                            \
  X(hot_cache_entries, "blocks in the hot tier")                                     \
  X(hot_cache_size_bytes, "RAM of their images")                                     \
  X(hot_cache_max_bytes, "limit of the hot tier; of the budget where one is shared") \
  X(hot_dirty_blocks, "blocks in the hot tier that are not on disk yet")             \
  X(lent_bytes, "RAM of images that only callers hold, or that are being read")      \
  X(ram_bytes, "RAM of all images: hot, pending and lent")

// What a cache holds of one model: blocks that it serves now. The limits are the cache's own.
struct ModelStats {
  std::string model_name;         // As stored; empty if nothing matches.
  uint64_t num_files = 0;         // At their final path.
  uint64_t total_size_bytes = 0;  // That they occupy on disk.
  uint64_t hot_cache_entries = 0;
  uint64_t hot_cache_size_bytes = 0;  // RAM of their images.
  uint64_t max_size_bytes = 0;
  uint64_t hot_cache_max_bytes = 0;
};

// Threads: a plain value, one consistent snapshot.
struct CacheStats {
#define KVKEEP_X(name, help) uint64_t name = 0;
  KVKEEP_COUNTERS(KVKEEP_X)
  KVKEEP_GAUGES(KVKEEP_X)
#undef KVKEEP_X
  std::array<uint64_t, kMissReasonCount> miss_reason{};  // Indexed by MissReason.
  std::array<uint64_t, kRefusalCount> save_refused{};    // Indexed by Refusal.
  std::array<LoadTimes, kSourceCount> load_times{};      // Indexed by Source.

  uint64_t missed(MissReason reason) const { return miss_reason[static_cast<size_t>(reason)]; }
  uint64_t refused(Refusal reason) const { return save_refused[static_cast<size_t>(reason)]; }
  const LoadTimes& times(Source source) const { return load_times[static_cast<size_t>(source)]; }
  // Share of the limit in force that is tracked; 0 if the limit is 0.
  double utilization() const;
};

// One JSON object: every field by name; miss_reason and save_refused as objects by reason,
// load_times by source.
std::string to_json(const CacheStats& stats);
// Prometheus text exposition (version 0.0.4): counters kvkeep_…_total, gauges kvkeep_…, histograms
// kvkeep_load_seconds by source.
std::string to_prometheus(const CacheStats& stats);

}  // namespace kvkeep
