// A seeded random walk over pool, tables and prefix cache beside a model that knows which blocks
// were stored and are held. After every step: a match is the longest stored prefix, its rows are
// those of its prompt, held blocks stay, references are what the tables hold, memory is bounded,
// and no block is left whose parent was evicted before it.
//
// KVKEEP_WALKS and KVKEEP_STEPS make it longer (`make property`), KVKEEP_SEED repeats one walk.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "testing/prompts.h"
#include "testing/proves.h"
#include "testing/test_store.h"
#include "walk_length.h"

namespace kvkeep {
namespace {

using testing::some_tokens;
using testing::state_after;
using testing::TestStore;
using testing::Tokens;

constexpr uint32_t kBlock = 8;
constexpr size_t kPoolBlocks = 24;
constexpr uint64_t kTenants = 2;

// A tree of prompts: each continues another one at any of its tokens.
class Prompts {
 public:
  const Tokens& pick(std::mt19937_64& random) {
    if (all_.size() < 40 || random() % 4 == 0) {
      Tokens next = some_tokens(random() % 5, 4 + random() % 60);
      if (!all_.empty() && random() % 4 != 0) {
        const Tokens& base = all_[random() % all_.size()];
        next.insert(next.begin(), base.begin(), base.begin() + random() % (base.size() + 1));
      }
      next.resize(std::min<size_t>(next.size(), 120));
      if (all_.size() >= 40) all_.erase(all_.begin());
      all_.push_back(std::move(next));
    }
    return all_[random() % all_.size()];
  }

 private:
  std::vector<Tokens> all_;
};

class PrefixWalk {
 public:
  explicit PrefixWalk(uint64_t seed) : random_(seed) {
    store_.options.hot_max_bytes = pick(3) * 20'000;
    store_.options.write_back = pick(3) != 0;
    store_.options.min_free_bytes = 0;
    store_.options.max_size_bytes = 60'000 + pick(200'000);
    store_.options.quarantine_max_bytes = 0;
    store_.options.pending_cap =
        1000;  // A full queue lets blocks overtake those that they continue.
    store_.options.preload_min_blocks = 1;
    options_.fields = {{"model", "m"}};
    options_.partial_tails = static_cast<PartialTails>(pick(3));
    store_.open();
    attach();
  }
  ~PrefixWalk() {
    held_.clear();
    prefixes_.reset();
  }

  void run(uint64_t steps) {
    for (uint64_t i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      step();
      check();
    }
  }

 private:
  struct Held {
    PrefixMatch match;
    Tokens tokens;
    Duration until;
  };

  uint64_t pick(uint64_t below) { return random_() % below; }
  std::string tenant() { return pick(kTenants) == 0 ? "" : "tenant"; }

  void attach() {
    prefixes_.reset();
    pool_ = std::make_unique<BlockPool>(kBlock, kPoolBlocks);
    prefixes_ = *PrefixCache::open(*pool_, *store_.cache, options_);
  }

  void step() {
    switch (pick(12)) {
      case 0:
      case 1:
      case 2:
        return store(prompts_.pick(random_));
      case 3:
      case 4:
        return match(prompts_.pick(random_), pick(2) == 0);
      case 5:
        return load_held();
      case 6:
        if (!held_.empty()) held_.erase(held_.begin() + pick(held_.size()));
        return;
      case 7:
        return preload();
      case 8:
        return remove_a_block(prompts_.pick(random_));
      case 9:
        store_.executor->run_all();
        return;
      case 10:
        store_.clock->advance(std::chrono::seconds(pick(40)));
        return;
      default:
        if (pick(8) == 0) restart();
    }
  }

  void restart() {
    held_.clear();
    prefixes_.reset();
    store_.restart();
    attach();
  }

  void store(const Tokens& tokens) {
    const std::string salt = tenant();
    const auto report = prefixes_->store({tokens, salt, {}}, state_after(tokens));
    ASSERT_TRUE(report.ok()) << report.status().to_string();
    EXPECT_LE(report->tokens, tokens.size());
    note_family(tokens, salt);
  }

  std::vector<BlockHash> full_blocks(const Tokens& tokens, const std::string& salt) const {
    ChainOptions chain{kBlock, options_.fields, false, {}, options_.recipe};
    if (!salt.empty()) chain.fields["salt"] = salt;
    return *chain_keys(tokens, chain);
  }

  void note_family(const Tokens& tokens, const std::string& salt) {
    const std::vector<BlockHash> keys = full_blocks(tokens, salt);
    for (size_t i = 1; i < keys.size(); ++i) parent_of_.insert_or_assign(keys[i], keys[i - 1]);
  }

  // How many full blocks of the prompt are there, asked one by one.
  size_t full_blocks_there(const Tokens& tokens, const std::string& salt) {
    size_t there = 0;
    for (const BlockHash& key : full_blocks(tokens, salt)) {
      if (!store_.cache->has_block(key)) break;
      ++there;
    }
    return there;
  }

  void match(const Tokens& tokens, bool keep) {
    const std::string salt = tenant();
    auto found = prefixes_->match({tokens, salt, {}});
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    const size_t there = full_blocks_there(tokens, salt);
    const bool pool_is_full = found->end == MissReason::kNoMemory;
    if (pool_is_full) {
      EXPECT_LE(found->tokens, std::min(there * kBlock + kBlock - 1, tokens.size() - 1));
      EXPECT_EQ(held_blocks(), kPoolBlocks);
    } else {
      EXPECT_GE(found->tokens, std::min(there * kBlock, tokens.size() - 1));
      EXPECT_LT(found->tokens, there * kBlock + kBlock);
    }
    EXPECT_LT(found->tokens, tokens.size());
    load(*found, tokens);
    if (keep) held_.push_back({*std::move(found), tokens, now() + options_.lease});
  }

  void load(const PrefixMatch& match, const Tokens& tokens) {
    const LoadedPrefix prefix = prefixes_->load(match);
    EXPECT_EQ(testing::difference(prefix, tokens), "");
    EXPECT_LE(prefix.tokens, match.tokens);
    // What is leased is there, unless it was removed by force.
    if (!prefix.end)
      EXPECT_EQ(prefix.tokens, match.tokens);
    else
      EXPECT_EQ(prefix.end, MissReason::kDeleted);
  }

  void load_held() {
    if (held_.empty()) return;
    const Held& held = held_[pick(held_.size())];
    if (now() < held.until) load(held.match, held.tokens);
  }

  void preload() {
    if (held_.empty()) return;
    store_.executor->run_during(
        [this] { prefixes_->preload_blocks(held_[pick(held_.size())].match.table); });
  }

  void remove_a_block(const Tokens& tokens) {
    const auto found = prefixes_->match({tokens, {}, {}});
    ASSERT_TRUE(found.ok());
    if (found->blocks.empty()) return;
    const BlockHash key = found->blocks[pick(found->blocks.size())].key;
    EXPECT_EQ(store_.cache->delete_block(key).status().code(), Code::kFailedPrecondition);
    if (pick(4) != 0) return;
    EXPECT_TRUE(store_.cache->delete_block(key, true).ok());
    deleted_.insert(key);
  }

  Duration now() { return store_.clock->mono(); }
  uint64_t held_blocks() { return prefixes_->stats().pool.held_blocks; }

  void check() {
    std::map<BlockId, uint32_t> references;
    for (const Held& held : held_) {
      for (const BlockId id : held.match.table.block_ids) ++references[id];
    }
    for (const auto& [id, count] : references) EXPECT_EQ(pool_->get(id)->ref_count, count);
    const PoolStats pool = prefixes_->stats().pool;
    EXPECT_EQ(pool.held_blocks, references.size());
    EXPECT_LE(pool.held_blocks + pool.known_blocks, kPoolBlocks);
    const CacheStats stats = store_.cache->stats();
    EXPECT_LE(stats.allocated_bytes, stats.max_size_bytes);
    EXPECT_LE(stats.hot_cache_size_bytes, stats.hot_cache_max_bytes);
    check_leases();
    if (pick(8) == 0) check_families();
  }

  // Leaf-first: what is there can be reached, unless somebody deleted a block in between.
  void check_families() {
    for (const auto& [key, parent] : parent_of_) {
      if (!store_.cache->has_block(key) || deleted_.count(parent) > 0) continue;
      EXPECT_TRUE(store_.cache->has_block(parent)) << store_.cache->why(parent).text;
    }
  }

  void check_leases() {
    for (const Held& held : held_) {
      if (now() >= held.until) continue;
      for (const MatchedBlock& block : held.match.blocks) {
        const Explanation there = store_.cache->why(block.key);
        // One that is not written yet may find no room beside others that are leased.
        const bool no_room = store_.cache->stats().refused(Refusal::kNoSpace) > 0 &&
                             there.reason == MissReason::kEvicted;
        EXPECT_TRUE(there.source || there.reason == MissReason::kDeleted || no_room) << there.text;
      }
    }
  }

  std::mt19937_64 random_;
  TestStore store_;
  PrefixOptions options_;
  std::unique_ptr<BlockPool> pool_;
  std::unique_ptr<PrefixCache> prefixes_;
  Prompts prompts_;
  std::vector<Held> held_;
  std::map<BlockHash, BlockHash> parent_of_;
  std::set<BlockHash> deleted_;  // Once; blocks that continue them may have stayed.
};

TEST(PrefixWalk, ARandomWalkKeepsThePromises) {
  testing::proves("RUL-25", "RUL-26", "RUL-41", "PFX-03");
  const WalkLength length = walk_length(20, 400);
  for (uint64_t seed = length.first_seed; seed < length.first_seed + length.walks; ++seed) {
    PrefixWalk(seed).run(length.steps);
    if (::testing::Test::HasFailure()) {
      std::cout << "repeat it with KVKEEP_SEED=" << seed << "\n";
      return;
    }
  }
}

}  // namespace
}  // namespace kvkeep
