// A seeded random walk over everything that callers, disks and other programs do to a cache, beside
// a model that only knows which contents each key may have. After every step: right bytes or a
// miss, limits kept on disk and in RAM, counters that add up.
//
// KVKEEP_WALKS and KVKEEP_STEPS make it longer (`make property`), KVKEEP_SEED repeats one walk.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <random>
#include <set>

#include "testing/proves.h"
#include "testing/test_store.h"
#include "walk_length.h"

namespace kvkeep {
namespace {

using testing::Op;
using testing::TestBlock;
using testing::TestStore;

constexpr uint64_t kKeys = 24;
constexpr uint64_t kSizes[] = {2000, 4096, 9000, 20000};
constexpr uint64_t kLargest = 20000;

// Contents that one key may have: always the same size, so that only its bytes tell them apart.
TestBlock content(uint64_t key, uint64_t variant) {
  TestBlock block = testing::sized(1000 * variant + key, kSizes[key % std::size(kSizes)]);
  block.hash = testing::key_of(key);
  if (key % 3 != 0) block.input.parent = testing::key_of(key - 1);
  return block;
}

class Walk {
 public:
  explicit Walk(uint64_t seed) : random_(seed), store_({.block_bytes = pick(2) ? 512u : 1u}) {
    store_.options.model_name = "m";
    store_.options.quarantine_max_bytes = pick(2) * 30'000;
    store_.options.pending_cap = static_cast<uint32_t>(1 + pick(8));
    store_.options.pending_max_bytes = 20'000 + pick(60'000);
    store_.options.max_size_bytes = 60'000 + pick(200'000);
    store_.options.hot_max_bytes = pick(3) * 30'000;
    store_.options.write_back = pick(4) != 0;
    if (pick(3) == 0) store_.options.flush_after.reset();
    store_.options.preload_min_blocks = 1;
    store_.options.durability = static_cast<Durability>(pick(3));
    limit_ = store_.options.max_size_bytes;
    store_.disk->on_operation([this](const testing::Operation&) { check_disk(); });
    store_.open();
  }

  void run(uint64_t steps) {
    for (uint64_t i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      step();
      check();
    }
    store_.files->plan().clear();
  }
  const std::string& history() const { return history_; }

 private:
  using Variants = std::set<uint64_t>;

  uint64_t pick(uint64_t below) { return random_() % below; }
  uint64_t pick_key() { return pick(kKeys); }
  BlockHash hash(uint64_t key) const { return testing::key_of(key); }
  void note(const std::string& what) { history_ += what + "\n"; }

  void step() {
    const uint64_t key = pick_key();
    switch (pick(28)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        return save(key);
      case 5:
      case 6:
      case 7:
      case 8:
        return load(key);
      case 9:
        return load_many(key);
      case 10:
      case 11:
      case 12:
        return run_tasks();
      case 13:
        return remove(key);
      case 14:
        return report_bad(key);
      case 15:
        return preload(key);
      case 16:
        return change_ram(key);
      case 17:
        return pass_time();
      case 18:
        return flush();
      case 19:
        return restart();
      case 20:
        return damage(key);
      case 21:
        return unlink_from_outside(key);
      case 22:
        return plan_fault();
      default:
        return store_.files->plan().clear();
    }
  }

  void save(uint64_t key) {
    const uint64_t variant = 1 + pick(3);
    TestBlock block = content(key, variant);
    block.input.write_back = pick(4) != 0;
    // The file of a suspect stays where it is if this write fails, and may be served again.
    const Explanation before = store_.cache->why(block.hash);
    const bool suspect = before.reason == MissReason::kSuspect || before.source == Source::kDisk;
    const std::string outcome = store_.save(block);
    note("save " + std::to_string(key) + " variant " + std::to_string(variant) + ": " + outcome);
    if (outcome != "stored" && outcome != "queued" && outcome != "written") return;
    if (!suspect) served_[key].clear();
    served_[key].insert(variant);
    on_disk_[key].insert(variant);
  }

  void expect_right(uint64_t key, const Result<LoadedBlock>& loaded) {
    std::string seen = TestStore::outcome(content(key, 1), loaded);
    Variants& may = served_[key];
    bool right = !loaded.ok();
    for (const uint64_t variant : may) {
      right = right || testing::difference(content(key, variant).input, *loaded) == "";
    }
    note("load " + std::to_string(key) + ": " + (loaded.ok() ? "hit" : seen));
    EXPECT_TRUE(right) << "key " << key << ": " << seen;
  }
  void load(uint64_t key) {
    expect_right(key, store_.cache->load_block_with_info(hash(key), pick(4) != 0));
  }
  std::vector<BlockHash> hashes_from(uint64_t key) {
    std::vector<BlockHash> hashes;
    for (uint64_t k = key; k < std::min(key + 5, kKeys); ++k) hashes.push_back(hash(k));
    return hashes;
  }
  void load_many(uint64_t key) {
    const auto mode = pick(2) ? BatchMode::kPrefix : BatchMode::kEach;
    const auto results = store_.cache->load_blocks(hashes_from(key), mode);
    for (size_t i = 0; i < results.size(); ++i) expect_right(key + i, results[i]);
  }
  void preload(uint64_t key) {
    note("preload " + std::to_string(key));
    store_.cache->preload(hashes_from(key));
  }

  void remove(uint64_t key) {
    const auto removed = store_.cache->delete_block(hash(key));
    note("delete " + std::to_string(key) + (removed.ok() ? "" : ": failed"));
    served_[key].clear();
    if (removed.ok()) on_disk_[key].clear();
  }
  void report_bad(uint64_t key) {
    note("report_bad " + std::to_string(key));
    static_cast<void>(store_.cache->report_bad(hash(key)));
    served_[key].clear();  // A file that could not be moved may come back with a restart.
  }

  // Its file stays, and may come back when the layers change, or with a restart.
  void forget(uint64_t key) {
    note("forget " + std::to_string(key));
    store_.cache->forget_block(hash(key));
    served_[key].clear();
  }
  void change_limit() {
    limit_ = 60'000 + pick(200'000);
    note("limit " + std::to_string(limit_));
    store_.cache->set_configured_max_size(limit_);
    if (pick(2)) store_.cache->enforce_size_limit();
    if (pick(4) == 0) clear();
  }
  void clear() {
    note("clear");
    const bool cleared = store_.cache->clear().ok();
    for (uint64_t key = 0; key < kKeys; ++key) {
      served_[key].clear();
      if (cleared) on_disk_[key].clear();
    }
  }
  void change_free_space() {
    note("free space");
    if (pick(2)) {
      store_.files->plan().set_space(pick(300'000));
    } else {
      store_.files->plan().set_space({});
    }
    store_.clock->advance(std::chrono::seconds(31));
  }
  void change_layers() {
    note("layers");
    const std::vector<std::string> types{pick(2) ? "KVCache" : "ArraysCache"};
    store_.cache->set_expected_layer_types(types, std::nullopt);
    if (pick(2)) store_.cache->sweep_stale_layouts();
    // What was forgotten or swept may be served again.
    for (uint64_t key = 0; key < kKeys; ++key)
      served_[key].insert(on_disk_[key].begin(), on_disk_[key].end());
  }

  void run_tasks() {
    note("tasks");
    store_.executor->run(1 + pick(4));
  }
  void pass_time() {
    note("time");
    store_.clock->advance(std::chrono::milliseconds(pick(5000)));
  }
  void change_ram(uint64_t key) {
    note("ram");
    switch (pick(3)) {
      case 0:
        store_.cache->shrink_hot_to(pick(40'000), {hash(key)});
        break;
      case 1:
        store_.cache->clear_hot(pick(2) ? HotClear::kSpill : HotClear::kDiscard);
        break;
      default: {
        const uint64_t limit = pick(3) * 30'000;
        store_.cache->set_hot_max_bytes(limit);
        store_.cache->shrink_hot_to(limit);
      }
    }
  }
  void flush() {
    note("flush");
    store_.executor->run_during([&] { EXPECT_TRUE(store_.cache->flush({}).ok()); });
  }

  void restart() {
    note("restart");
    store_.files->plan().clear();
    store_.close();
    served_ = on_disk_;
    store_.options.max_size_bytes = limit_;
    store_.open();
    for (uint64_t key = 0; key < kKeys; ++key) {
      if (!store_.disk->read_all(path(key))) served_[key].clear();
    }
  }

  std::string path(uint64_t key) const { return block_path(hash(key)); }
  // What other programs do; not while the cache may be doing the same.
  void damage(uint64_t key) {
    const auto bytes = store_.disk->read_all(path(key));
    if (!bytes || bytes->empty()) return;
    note("damage " + std::to_string(key));
    store_.disk->flip_bit(path(key), pick(8 * bytes->size()));
  }
  void unlink_from_outside(uint64_t key) {
    if (!store_.disk->read_all(path(key))) return;
    note("unlink " + std::to_string(key));
    store_.disk->remove_tree(path(key));
  }
  void plan_fault() {
    static constexpr Op kOps[] = {Op::kCreate, Op::kAppend, Op::kRename,   Op::kUnlink,
                                  Op::kRead,   Op::kStat,   Op::kOpenRead, Op::kSyncData};
    static constexpr int kErrors[] = {EIO, ENOSPC, EACCES, EMFILE};
    const Op op = kOps[pick(std::size(kOps))];
    const int error = kErrors[pick(std::size(kErrors))];
    note("fault " + std::string(name_of(op)) + " " + std::to_string(error));
    store_.files->plan().fail(op, "", error, 1 + pick(3));
  }

  // Under a limit that was lowered files may stay until somebody makes room, but none come.
  void check_disk() const {
    EXPECT_LE(store_.disk->allocated_bytes(), std::max(limit_, held_disk_)) << history_;
  }
  void check() {
    check_disk();
    held_disk_ = store_.disk->allocated_bytes();
    const CacheStats s = store_.cache->stats();
    uint64_t missed = 0;
    for (const uint64_t count : s.miss_reason) missed += count;
    EXPECT_EQ(s.lookups, s.load_hits + missed);
    EXPECT_EQ(s.load_hits, s.load_hits_hot + s.load_hits_pending + s.load_hits_disk);
    EXPECT_EQ(s.hits, s.load_hits + s.saves_present);
    EXPECT_GE(s.allocated_bytes, held_disk_);  // A file removed from outside is noticed later.
    // Under a limit that was lowered it may hold what had no room in the queue, but no more.
    EXPECT_LE(s.hot_cache_size_bytes, std::max(s.hot_cache_max_bytes, held_hot_));
    held_hot_ = s.hot_cache_size_bytes;
    EXPECT_LE(s.pending_bytes, std::max(*store_.options.pending_max_bytes, 2 * kLargest));
    EXPECT_LE(s.pending_blocks, *store_.options.pending_cap);
    // A cancelled write holds its place in the queue, though not its image, until its turn.
    EXPECT_LE(s.ram_bytes, s.hot_cache_size_bytes + s.pending_bytes + s.lent_bytes);
    EXPECT_EQ(s.num_blocks, store_.cache->size());
    check_presence();
  }
  // Whoever says that a block is there has bytes for it.
  void check_presence() {
    uint64_t present = 0;
    for (uint64_t key = 0; key < kKeys; ++key) {
      const bool has = store_.cache->has_block(hash(key));
      present += has;
      EXPECT_EQ(has, store_.cache->why(hash(key)).source.has_value()) << key;
      EXPECT_TRUE(!has || !served_[key].empty()) << "key " << key << " was removed";
    }
    EXPECT_GE(present, store_.cache->size());
  }

  std::mt19937_64 random_;
  std::string history_;
  TestStore store_;
  uint64_t limit_ = 0;     // Of the disk, as configured last.
  uint64_t held_hot_ = 0;  // After the step before.
  uint64_t held_disk_ = 0;
  std::map<uint64_t, Variants> served_;   // What a load may return now.
  std::map<uint64_t, Variants> on_disk_;  // What it may return after a restart.
};

TEST(Stateful, WhateverHappensItIsRightBytesOrAMissWithinTheLimits) {
  testing::proves("RUL-32", "LIFE-01", "STAT-08", "EVICT-13", "RUL-51");
  const WalkLength length = walk_length(30, 400);
  for (uint64_t seed = length.first_seed; seed < length.first_seed + length.walks; ++seed) {
    Walk walk(seed);
    walk.run(length.steps);
    ASSERT_FALSE(HasFailure()) << "KVKEEP_SEED=" << seed << " KVKEEP_WALKS=1\n" << walk.history();
  }
}

}  // namespace
}  // namespace kvkeep
