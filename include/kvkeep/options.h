// How a cache is opened. A plain struct; every default works.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kvkeep/environment.h"
#include "kvkeep/hot_budget.h"
#include "kvkeep/status.h"

namespace kvkeep {

// How block files are written. Both are read.
enum class Profile : uint8_t {
  kExtended,   // With a digest over the whole file and aligned data.
  kSeedExact,  // Byte for byte what oMLX 0.5 writes: no digest, so damage to tensor bytes is not
               // seen.
};

// What must be on stable storage before a block counts as written.
enum class Durability : uint8_t {
  kNone,        // Nothing. After power loss a file may be damaged; that is detected and is a miss.
  kData,        // The file's contents.
  kDataAndDir,  // The contents and the name.
};

// Which block leaves first when room is needed.
enum class Eviction : uint8_t {
  kLeafFirstLru,  // Least recently used, but no block before those that continue it.
  kLru,           // Least recently used, whatever continues it.
};

struct Options {
  // The store. Created with its parents if missing. Required, unless hot_only.
  std::optional<std::filesystem::path> cache_dir;
  // Bytes that the directory may occupy, in allocated bytes: block files of every model, temporary
  // files, .kvkeep/ and the quarantine, and the directories themselves. Required, unless hot_only.
  uint64_t max_size_bytes = 0;

  // The hot tier: RAM for blocks that were saved or loaded, in bytes that their images really
  // occupy. 0 turns it off.
  uint64_t hot_max_bytes = 0;
  // One limit shared by several caches, in place of hot_max_bytes.
  std::shared_ptr<HotBudget> budget;
  // No disk at all: nothing is created, read or written, and blocks that leave RAM are gone.
  bool hot_only = false;
  // With a hot tier, new blocks stay in RAM and are written when they are flush_after old, or leave
  // RAM. Off: they go to disk at once and are not kept in RAM (write-through).
  bool write_back = true;
  // What a crash may lose, beside the write queue. Absent: blocks are written only when they leave
  // RAM, and by flush() and close().
  std::optional<Duration> flush_after = std::chrono::seconds(2);

  // What blocks must be for to be served and saved here. Empty, 0 or absent: not checked.
  std::string model_name;
  uint32_t num_layers = 0;
  uint32_t block_size = 0;  // Tokens of a full block.
  // With a model_name and no layer types, those of the first block saved with some are taken.
  std::optional<std::vector<std::string>> layer_types;
  // Whatever else changes the state: model digest, adapter, KV dtype, engine build, … A cache with
  // an identity serves only files of that identity; one without serves only files without.
  std::map<std::string, std::string> identity;

  Profile profile = Profile::kExtended;
  Durability durability = Durability::kNone;
  // Refuse files without a digest (those of oMLX). Otherwise they are served after structural
  // checks and counted as unverified_loads.
  bool require_digest = false;

  // Blocks that may wait to be written: by count, and by bytes of their images. Absent: from
  // max_pending_writes() with the two estimates below, and pending cap x expected block bytes, at
  // most 512 MiB (but always room for one block).
  std::optional<uint32_t> pending_cap;
  std::optional<uint64_t> pending_max_bytes;
  uint64_t block_size_tokens = 256;
  uint64_t kv_bytes_per_token = 200'000;
  // How long a save waits for room in a full queue. Then it writes the block itself, but only if
  // the write that the queue waits for is younger than io_deadline; else it is refused as busy.
  Duration queue_wait = std::chrono::seconds(1);
  Duration io_deadline = std::chrono::seconds(5);
  // Files that one save may unlink on the caller's thread. The writer does the rest.
  uint32_t max_inline_unlinks_per_save = 32;
  // Share of the limit that the writer keeps free, so that saves rarely unlink. 0: none.
  double background_reclaim = 0.05;

  // RAM for images: loaded, lent and waiting to be written. Absent: half of the physical RAM.
  std::optional<uint64_t> ram_max_bytes;
  // How often names and sizes in the directory are compared with what is known. 0: never.
  Duration reconcile_interval = std::chrono::seconds(60);
  Eviction eviction = Eviction::kLeafFirstLru;
  // Bytes of the disk that stay free for others, whatever max_size_bytes allows. 0: none but 1 % of
  // what is held and free. Absent: 5 % of the disk, at most 5 GiB.
  std::optional<uint64_t> min_free_bytes;
  // How long an answer to "how much is free?" is used, and how often a nearly full disk is warned
  // of.
  Duration disk_snapshot_ttl = std::chrono::seconds(30);
  Duration pressure_warn_interval = std::chrono::seconds(60);
  // Damaged files are kept aside for inspection up to this much, oldest leave first; 0 deletes
  // them. Absent: 1 % of max_size_bytes, at most 256 MiB.
  std::optional<uint64_t> quarantine_max_bytes;

  // preload() leaves it to the loads if fewer blocks than this would have to be read.
  uint32_t preload_min_blocks = 4;
  // Blocks that preload() reads at the same time, as far as the executor has threads.
  uint32_t preload_max_workers = 8;

  // How long close() and the destructor wait for the queue. Absent: 60 s, with a hot tier 120 s.
  std::optional<Duration> close_deadline;
};

// kInvalidArgument naming the option and what is accepted.
Status validate(const Options& options);

// Blocks that may wait to be written, from RAM size and expected block bytes: conformance C.17. 64
// if the RAM size cannot be found out.
uint32_t max_pending_writes(uint64_t block_tokens, uint64_t kv_bytes_per_token,
                            const SystemInfo& system);

}  // namespace kvkeep
