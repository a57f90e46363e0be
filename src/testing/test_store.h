// TestStore opens TieredCaches over doubles: a disk in memory that can fail, a clock that stands
// still, and an executor that a test steps. Closing and opening again is a restart.
//
// Threads: one thread at a time, but for what is said of the doubles themselves.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "disk/store_layout.h"
#include "io/read_engine.h"
#include "testing/block_builder.h"
#include "testing/block_compare.h"
#include "testing/exact_buffer_pool.h"
#include "testing/faulty_file_system.h"
#include "testing/manual_clock.h"
#include "testing/manual_executor.h"
#include "testing/mem_file_system.h"
#include "testing/recording_events.h"
#include "testing/recording_logger.h"
#include "tier/tiered_cache.h"

namespace kvkeep::testing {

class TestStore {
 public:
  explicit TestStore(MemFileSystem::Options disk_options = {}) {
    disk_options.clock = clock;
    disk = std::make_shared<MemFileSystem>(disk_options);
    files = std::make_shared<FaultyFileSystem>(disk);
    options.cache_dir = "/store";
    options.max_size_bytes = 1ull << 40;
    options.queue_wait = Duration::zero();
    options.reconcile_interval = Duration::zero();  // It would be seen in counts of calls.
    options.background_reclaim = 0;  // The contract's figures are for a limit that is used up.
  }

  ~TestStore() {
    executor->run_during([this] { cache.reset(); });
  }

  Result<std::unique_ptr<TieredCache>> try_open() {
    StoreSeams seams;
    seams.file_system = files;
    seams.engine = make_pread_engine(files);
    seams.pool = pool;
    seams.nonce = "00000000000000" + std::to_string(10 + ++process % 90);
    return TieredCache::open(options, {clock, executor, nullptr, logger, events}, std::move(seams));
  }
  void open() {
    auto opened = try_open();
    ASSERT_TRUE(opened.ok()) << opened.status().to_string();
    cache = *std::move(opened);
    if (own_bytes == 0) own_bytes = cache->tracked_size();
  }
  void close() {
    executor->run_during([this] {
      const auto report = cache->close(std::nullopt);
      ASSERT_TRUE(report.ok()) << report.status().to_string();
      cache.reset();
    });
  }
  void restart() {
    close();
    open();
  }

  // Everything dirty or queued is written.
  void flush() {
    executor->run_during([this] { ASSERT_TRUE(cache->flush({}).ok()); });
  }

  // "stored", "queued" or "present", or what was refused: one word, so that tests compare one
  // thing.
  std::string save(const TestBlock& block) {
    const auto outcome = cache->save_block(block.hash, block.input);
    if (outcome.ok()) return std::string(name_of(*outcome));
    const auto refusal = outcome.status().refusal();
    return refusal ? std::string(name_of(*refusal)) : std::string(name_of(outcome.status().code()));
  }
  void save_and_write(const TestBlock& block) {
    ASSERT_EQ(save(block), "queued");
    executor->run_all();
  }
  // "hot", "pending" or "disk" if what was loaded is exactly the block, "WRONG: …" if it is not,
  // else the reason of the miss.
  std::string load(const TestBlock& block) {
    return outcome(block, cache->load_block_with_info(block.hash), options.profile);
  }
  static std::string outcome(const TestBlock& block, const Result<LoadedBlock>& loaded,
                             Profile profile = Profile::kExtended) {
    if (!loaded.ok()) return std::string(name_of(*loaded.status().miss_reason()));
    const std::string wrong = difference(block.input, *loaded, profile);
    return wrong.empty() ? std::string(name_of(loaded->source)) : "WRONG: " + wrong;
  }
  std::string path(const TestBlock& block) const { return kvkeep::block_path(block.hash); }
  // What blocks take of the limit: everything tracked but the store's own files, which exist from
  // open on.
  uint64_t block_bytes() const { return cache->tracked_size() - own_bytes; }
  // Bytes of the block's file in this store.
  uint64_t file_bytes(const TestBlock& block) const { return disk->read_all(path(block))->size(); }

  Options options;
  const std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  const std::shared_ptr<ManualExecutor> executor = std::make_shared<ManualExecutor>(clock);
  const std::shared_ptr<RecordingEvents> events = std::make_shared<RecordingEvents>();
  const std::shared_ptr<RecordingLogger> logger = std::make_shared<RecordingLogger>();
  const std::shared_ptr<ExactBufferPool> pool = ExactBufferPool::create(1ull << 30);
  std::shared_ptr<MemFileSystem> disk;
  std::shared_ptr<FaultyFileSystem> files;
  std::unique_ptr<TieredCache> cache;
  uint64_t own_bytes = 0;
  unsigned process = 0;  // Each open is another process, of the next number.
};

}  // namespace kvkeep::testing
