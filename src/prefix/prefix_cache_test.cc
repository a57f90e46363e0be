// Tokens in, longest prefix out, over a real cache on doubles.
#include "kvkeep/prefix_cache.h"

#include <gtest/gtest.h>

#include "disk/namespaces.h"
#include "testing/prompts.h"
#include "testing/proves.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using testing::difference;
using testing::proves;
using testing::some_tokens;
using testing::state_after;
using testing::TestStore;
using testing::Tokens;
using testing::operator+;

constexpr uint32_t kBlock = 16;  // Tokens of a block.

class PrefixCacheTest : public ::testing::Test {
 protected:
  PrefixCacheTest() {
    store_.options.hot_max_bytes = 1 << 20;
    options_.fields = {{"model", "m"}};
  }
  ~PrefixCacheTest() override { prefixes_.reset(); }

  void open(size_t pool_blocks = 1000) {
    prefixes_.reset();
    if (store_.cache != nullptr) store_.close();
    store_.open();
    attach(pool_blocks);
  }
  void attach(size_t pool_blocks = 1000) {
    prefixes_.reset();
    pool_ = std::make_unique<BlockPool>(kBlock, pool_blocks);
    auto opened = PrefixCache::open(*pool_, *store_.cache, options_);
    ASSERT_TRUE(opened.ok()) << opened.status().to_string();
    prefixes_ = *std::move(opened);
  }
  StoreReport store(const Tokens& tokens, std::string_view salt = {}) {
    const auto report = prefixes_->store({tokens, salt, {}}, state_after(tokens, 0, shape_));
    EXPECT_TRUE(report.ok()) << report.status().to_string();
    return report.ok() ? *report : StoreReport{};
  }
  PrefixMatch match(const Tokens& tokens, std::string_view salt = {}) {
    auto match = prefixes_->match({tokens, salt, {}});
    EXPECT_TRUE(match.ok()) << match.status().to_string();
    return match.ok() ? *std::move(match) : PrefixMatch{};
  }
  // How many tokens come back. Fails the test unless they are the right ones.
  uint64_t load(const Tokens& tokens, std::string_view salt = {}) {
    const LoadedPrefix prefix = prefixes_->load(match(tokens, salt));
    EXPECT_EQ(difference(prefix, tokens, shape_), "");
    return prefix.tokens;
  }
  PrefixStats stats() { return prefixes_->stats(); }

  TestStore store_;
  PrefixOptions options_;
  testing::StateShape shape_;
  std::unique_ptr<BlockPool> pool_;
  std::unique_ptr<PrefixCache> prefixes_;
};

TEST_F(PrefixCacheTest, TheLongestSharedPrefixComesBack) {
  open();
  const Tokens stored = some_tokens(1, 100);
  EXPECT_EQ(store(stored).stored_blocks, 7u);  // Six full ones and a tail.
  EXPECT_EQ(load(stored + some_tokens(2, 10)), 100u);
  for (const size_t shared : {0, 1, 15, 16, 17, 95, 96, 99}) {
    const Tokens other = Tokens(stored.begin(), stored.begin() + shared) + some_tokens(3, 40);
    EXPECT_EQ(load(other), shared / kBlock * kBlock) << shared;
  }
}

TEST_F(PrefixCacheTest, AtLeastOneTokenIsLeftToCompute) {
  open();
  const Tokens tokens = some_tokens(1, 64);
  store(tokens);
  EXPECT_EQ(match(tokens).tokens, 63u);
  EXPECT_EQ(load(tokens), 63u);
  EXPECT_EQ(load(Tokens(tokens.begin(), tokens.begin() + 32)), 31u);
  EXPECT_EQ(load({tokens[0]}), 0u);
  EXPECT_EQ(load({}), 0u);
}

TEST_F(PrefixCacheTest, AnotherProcessFindsItAfterARestart) {
  open();
  const Tokens tokens = some_tokens(1, 100);
  store(tokens);
  open();
  EXPECT_EQ(load(tokens), 96u);  // The tail lived in RAM.
  const PrefixMatch found = match(tokens);
  EXPECT_EQ(found.blocks.size(), 6u);
  EXPECT_EQ(found.blocks[0].source, Source::kHot);
}

TEST_F(PrefixCacheTest, ANamespaceIsNotedWhenItFirstStoresSomething) {
  open();
  const Tokens tokens = some_tokens(1, 32);
  match(tokens);
  store_.executor->run_all();
  EXPECT_TRUE(read_namespaces(*store_.disk)->empty());
  store(tokens);
  store(tokens, "of a tenant");
  store_.executor->run_all();
  const Namespaces all = *read_namespaces(*store_.disk);
  ASSERT_EQ(all.size(), 2u);
  const KeyChain chain = *KeyChain::open(options_.fields);
  const KeyChain salted = *KeyChain::open({{"model", "m"}, {"salt", "of a tenant"}});
  EXPECT_TRUE(all.at(chain.root()->to_hex()).is_root);
  EXPECT_EQ(all.at(chain.root()->to_hex()).fields, options_.fields);
  EXPECT_EQ(all.at(salted.root()->to_hex()).fields,
            (Namespace{{"model", "m"}, {"salt", "salted"}}));
  const size_t reads = store_.files->count(testing::Op::kOpenRead);
  store(tokens);
  store(tokens, "of a tenant");
  store_.executor->run_all();
  EXPECT_EQ(store_.files->count(testing::Op::kOpenRead), reads) << "once is enough";
}

TEST_F(PrefixCacheTest, KeysOfOmlxHaveNoRootToNote) {
  options_.recipe = KeyRecipe::kOmlx1;
  open();
  store(some_tokens(1, 32));
  store_.executor->run_all();
  EXPECT_TRUE(read_namespaces(*store_.disk)->empty());
}

TEST_F(PrefixCacheTest, StoringAgainWritesNothingTwice) {
  open();
  const Tokens first = some_tokens(1, 64);
  const Tokens longer = first + some_tokens(2, 32);
  store(first);
  const StoreReport report = store(longer);
  EXPECT_EQ(report.present_blocks, 4u);
  EXPECT_EQ(report.stored_blocks, 2u);
  EXPECT_EQ(report.tokens, 96u);
  EXPECT_EQ(stats().blocks_present, 4u);
}

TEST_F(PrefixCacheTest, OnlyTheRestOfAPromptMayBeGiven) {
  open();
  const Tokens first = some_tokens(1, 64);
  const Tokens longer = first + some_tokens(2, 32);
  store(first);
  auto report = prefixes_->store({longer}, state_after(longer, 64));
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->stored_blocks, 2u);
  EXPECT_EQ(load(longer + Tokens{7}), 96u);
  const Tokens unknown = some_tokens(9, 96);
  report = prefixes_->store({unknown}, state_after(unknown, 64));
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->refused.code(), Code::kFailedPrecondition);
  EXPECT_EQ(report->tokens, 0u);
}

TEST_F(PrefixCacheTest, TailsAreKeptAsTheOptionSays) {
  proves("RUL-26");
  const Tokens tokens = some_tokens(1, 40);
  const Tokens more = tokens + some_tokens(2, 5);
  for (const auto& [tails, at_once, after] :
       {std::tuple(PartialTails::kNone, 32u, 32u), std::tuple(PartialTails::kHotOnly, 40u, 32u),
        std::tuple(PartialTails::kAll, 40u, 40u)}) {
    options_.partial_tails = tails;
    open();
    static_cast<void>(store_.cache->clear());
    store(tokens);
    EXPECT_EQ(load(more), at_once);
    open();
    EXPECT_EQ(load(more), after);
  }
}

TEST_F(PrefixCacheTest, WithoutAHotTierThereAreNoTails) {
  proves("RUL-26");
  store_.options.hot_max_bytes = 0;
  open();
  const StoreReport report = store(some_tokens(1, 40));
  EXPECT_EQ(report.tokens, 32u);
  EXPECT_TRUE(report.refused.ok());
  EXPECT_EQ(stats().tail_tokens_skipped, 8u);
}

TEST_F(PrefixCacheTest, TenantsWithDifferentSaltsShareNothing) {
  open();
  const Tokens tokens = some_tokens(1, 40);
  store(tokens, "alice");
  EXPECT_EQ(match(tokens, "bob").blocks.size(), 0u);
  EXPECT_EQ(match(tokens).blocks.size(), 0u);
  EXPECT_EQ(load(tokens, "bob"), 0u);
  EXPECT_EQ(load(tokens, "alice"), 39u);
  EXPECT_EQ(store(tokens, "bob").present_blocks, 0u);
  EXPECT_EQ(prefixes_->why({tokens, "carol", {}})->find("0 tokens"), 0u);
}

TEST_F(PrefixCacheTest, ExtrasBeginWithTheBlockThatTheyReach) {
  open();
  const Tokens tokens = some_tokens(1, 64);
  const ExtraRange image{20, {std::string("image a")}};
  const ExtraRange other{20, {std::string("image b")}};
  ASSERT_TRUE(prefixes_->store({tokens, {}, {&image, 1}}, state_after(tokens)).ok());
  EXPECT_EQ(prefixes_->match({tokens, {}, {&image, 1}})->tokens, 63u);
  EXPECT_EQ(prefixes_->match({tokens, {}, {&other, 1}})->tokens, 16u);
  EXPECT_EQ(prefixes_->match({tokens, {}, {}})->tokens, 16u);
  const ExtraRange unsorted[] = {image, {3, {}}};
  EXPECT_EQ(prefixes_->match({tokens, {}, unsorted}).status().code(), Code::kInvalidArgument);
}

TEST_F(PrefixCacheTest, AMatchLeasesItsBlocksUntilItEnds) {
  proves("RUL-41", "RUL-25");
  open();
  const Tokens tokens = some_tokens(1, 48);
  store(tokens);
  std::optional<PrefixMatch> held = match(tokens);
  const BlockHash key = held->blocks[0].key;
  EXPECT_EQ(store_.cache->delete_block(key).status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(pool_->get(held->table.block_ids[0])->ref_count, 1u);
  const BlockTable copy = held->table;
  held.reset();
  EXPECT_EQ(store_.cache->delete_block(key).status().code(), Code::kFailedPrecondition);
  const_cast<BlockTable&>(copy).hold.reset();
  EXPECT_EQ(pool_->get(copy.block_ids[0])->ref_count, 0u);
  EXPECT_TRUE(*store_.cache->delete_block(key));
}

TEST_F(PrefixCacheTest, ABlockThatVanishedAfterTheMatchEndsThePrefix) {
  open();
  const Tokens tokens = some_tokens(1, 80);
  store(tokens);
  const PrefixMatch found = match(tokens);
  ASSERT_TRUE(*store_.cache->delete_block(found.blocks[3].key, true));
  const LoadedPrefix prefix = prefixes_->load(found);
  EXPECT_EQ(prefix.tokens, 48u);
  EXPECT_EQ(prefix.end, MissReason::kDeleted);
  EXPECT_EQ(difference(prefix, tokens), "");
  EXPECT_EQ(match(tokens).end, MissReason::kDeleted);
  EXPECT_NE(match(tokens).text.find("(tokens 48 to 63): deleted by a caller"), std::string::npos);
}

TEST_F(PrefixCacheTest, ADamagedBlockEndsThePrefixAndIsStoredAgain) {
  open();
  const Tokens tokens = some_tokens(1, 80);
  store(tokens);
  open();
  const PrefixMatch found = match(tokens);
  store_.disk->flip_bit(block_path(found.blocks[2].key), 5'000);
  EXPECT_EQ(load(tokens), 32u);
  EXPECT_EQ(store(tokens).stored_blocks, 1u);
  EXPECT_EQ(load(tokens), 79u);
}

TEST_F(PrefixCacheTest, ABlockOfOtherTokensUnderTheSameKeyIsForgotten) {
  proves("RUL-20", "PFX-04");
  open();
  const Tokens tokens = some_tokens(1, 32);
  store(tokens);
  const PrefixMatch found = match(tokens);
  ASSERT_TRUE(*store_.cache->delete_block(found.blocks[0].key, true));
  // The same key, as if two prompts collided.
  BlockInput wrong;
  wrong.layers = state_after(some_tokens(2, kBlock)).layers;
  wrong.token_count = kBlock;
  wrong.tokens = *token_digest(some_tokens(2, kBlock));
  ASSERT_TRUE(store_.cache->save_block(found.blocks[0].key, std::move(wrong)).ok());
  const LoadedPrefix prefix = prefixes_->load(match(tokens));
  EXPECT_EQ(prefix.tokens, 0u);
  EXPECT_EQ(prefix.end, MissReason::kTokens);
  EXPECT_FALSE(store_.cache->has_block(found.blocks[0].key));
  EXPECT_EQ(stats().forgotten_blocks, 1u);
  store(tokens);
  EXPECT_EQ(load(tokens), 31u);
}

TEST_F(PrefixCacheTest, BlocksThatDoNotFitTogetherEndThePrefix) {
  open();
  const Tokens first = some_tokens(1, 32);
  const Tokens longer = first + some_tokens(2, 32);
  store(first);
  PromptState other = state_after(longer);
  other.layers.push_back(other.layers[0]);
  other.layer_types.push_back("KVCache");
  ASSERT_TRUE(prefixes_->store({longer}, other).ok());
  const LoadedPrefix prefix = prefixes_->load(match(longer));
  EXPECT_EQ(prefix.tokens, 32u);
  EXPECT_EQ(prefix.end, MissReason::kLayout);
  EXPECT_EQ(difference(prefix, longer), "");
}

TEST_F(PrefixCacheTest, ARefusedSaveLeavesAPrefix) {
  store_.options.hot_max_bytes = 0;
  store_.options.pending_cap = 2;  // The third block is written by the call itself.
  open();
  store_.files->plan().fail(testing::Op::kAppend, "", EIO);
  const Tokens tokens = some_tokens(1, 80);
  const StoreReport report = store(tokens);
  EXPECT_EQ(report.refused.refusal(), Refusal::kIo);
  EXPECT_EQ(report.tokens, 32u);
  EXPECT_EQ(stats().stores_cut_short, 1u);
  EXPECT_EQ(load(tokens), 32u);
}

TEST_F(PrefixCacheTest, AFullPoolShortensTheMatchAndSaysSo) {
  open(3);
  const Tokens tokens = some_tokens(1, 80);
  store(tokens);
  const PrefixMatch found = match(tokens);
  EXPECT_EQ(found.tokens, 48u);
  EXPECT_EQ(found.end, MissReason::kNoMemory);
  EXPECT_NE(found.text.find("the block pool is full"), std::string::npos);
  const Tokens other = some_tokens(2, 32);
  store(other);
  EXPECT_EQ(match(other).tokens, 0u);
}

TEST_F(PrefixCacheTest, ArgumentsThatDisagreeAreNamed) {
  open();
  const Tokens tokens = some_tokens(1, 40);
  PromptState state = state_after(tokens);
  state.layer_types.pop_back();
  const auto refused = [&](const PromptState& given, std::span<const Snapshot> snapshots = {}) {
    const auto report = prefixes_->store({tokens}, given, snapshots);
    EXPECT_EQ(report.status().code(), Code::kInvalidArgument);
    return report.status().message();
  };
  EXPECT_NE(refused(state).find("layers: 2, but layer_types names 1"), std::string::npos);
  EXPECT_NE(refused(state_after(some_tokens(1, 39))).find("layers[0]: holds 39 tokens"),
            std::string::npos);
  state = state_after(tokens);
  state.first_token = 41;
  EXPECT_NE(refused(state).find("first_token"), std::string::npos);
  state = state_after(tokens);
  state.meta_states.emplace(1);
  EXPECT_NE(refused(state).find("meta_states: 1 for 2 layers"), std::string::npos);
  const Snapshot within = testing::snapshot_after(tokens, 17, shape_);
  EXPECT_NE(refused(state_after(tokens), {&within, 1}).find("snapshots[0].tokens"),
            std::string::npos);
  EXPECT_EQ(load(tokens), 0u);
}

TEST_F(PrefixCacheTest, OptionsThatCannotBeAreNamed) {
  open();
  BlockPool none(0, 10);
  EXPECT_EQ(PrefixCache::open(none, *store_.cache, options_).status().code(),
            Code::kInvalidArgument);
  options_.lease = Duration::zero();
  EXPECT_NE(PrefixCache::open(*pool_, *store_.cache, options_).status().message().find("lease"),
            std::string::npos);
  options_ = {};
  options_.recipe = KeyRecipe::kOmlx1;
  options_.fields = {{"adapter", "x"}};
  EXPECT_NE(PrefixCache::open(*pool_, *store_.cache, options_).status().message().find("adapter"),
            std::string::npos);
}

TEST_F(PrefixCacheTest, TheOtherRecipeFindsWhatItStored) {
  options_.recipe = KeyRecipe::kOmlx1;
  open();
  const Tokens tokens = some_tokens(1, 40);
  store(tokens);
  EXPECT_EQ(load(tokens + Tokens{1}), 40u);
  EXPECT_EQ(prefixes_->match({tokens, "salt", {}}).status().code(), Code::kInvalidArgument);
}

// Models with a sliding window: only some blocks hold its state.
class WindowTest : public PrefixCacheTest {
 protected:
  WindowTest() {
    shape_ = {1, 1, 8};
    options_.partial_tails = PartialTails::kAll;
    open();
  }
};

TEST_F(WindowTest, APrefixEndsWhereTheWholeStateIs) {
  const Tokens tokens = some_tokens(1, 64);
  store(tokens);
  EXPECT_EQ(load(tokens + some_tokens(2, 9)), 64u);
  EXPECT_EQ(load(tokens), 0u);  // Without its last token there is no state.
  EXPECT_EQ(load(Tokens(tokens.begin(), tokens.begin() + 40)), 0u);
  EXPECT_GT(stats().walked_back_blocks, 0u);
}

TEST_F(WindowTest, ATailHoldsTheStateOfThePromptsEnd) {
  const Tokens tokens = some_tokens(1, 70);
  store(tokens);
  open();
  EXPECT_EQ(load(tokens + Tokens{1, 2}), 70u);
}

TEST_F(WindowTest, SnapshotsLetAPrefixEndEarlier) {
  const Tokens tokens = some_tokens(1, 64);
  const Snapshot middle = testing::snapshot_after(tokens, 32, shape_);
  ASSERT_TRUE(prefixes_->store({tokens}, state_after(tokens, 0, shape_), {&middle, 1}).ok());
  EXPECT_EQ(load(Tokens(tokens.begin(), tokens.begin() + 50)), 32u);
}

TEST_F(WindowTest, ABlockWithoutStateGetsItWhenAPromptEndsThere) {
  const Tokens tokens = some_tokens(1, 64);
  const Tokens shorter(tokens.begin(), tokens.begin() + 32);
  store(tokens);
  EXPECT_EQ(load(shorter + some_tokens(5, 4)), 0u);
  EXPECT_EQ(store(shorter).stored_blocks, 1u);
  EXPECT_EQ(load(shorter + some_tokens(5, 4)), 32u);
  EXPECT_EQ(load(tokens + Tokens{1}), 64u);
}

TEST_F(WindowTest, ABlockIsNotGivenUpForAStateWithoutItsTokens) {
  const Tokens first = some_tokens(1, 64);
  const Tokens longer = first + some_tokens(2, 32);
  store(first);
  const Snapshot early = testing::snapshot_after(longer, 32, shape_);
  const auto report = prefixes_->store({longer}, state_after(longer, 64, shape_), {&early, 1});
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_TRUE(report->refused.ok()) << report->refused.to_string();
  EXPECT_EQ(report->tokens, 96u);
  EXPECT_EQ(load(longer + Tokens{1}), 96u);
}

TEST_F(WindowTest, TheTipBeforeTheLastGivesItsStateUp) {
  Tokens tokens = some_tokens(1, 32);
  store(tokens);
  for (uint64_t turn = 2; turn < 5; ++turn) {
    tokens = tokens + some_tokens(turn, 32);
    store(tokens);
  }
  EXPECT_EQ(stats().superseded_blocks, 2u);
  const auto up_to = [&](size_t count) {
    return Tokens(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count)) + Tokens{1};
  };
  EXPECT_EQ(load(up_to(128)), 128u);
  EXPECT_EQ(load(up_to(96)), 96u);
  EXPECT_EQ(load(up_to(64)), 0u);
}

TEST_F(WindowTest, OfTheEndsWithinBlocksTheLastTwoStay) {
  Tokens tokens = some_tokens(1, 20);
  std::vector<Tokens> ends;
  for (uint64_t turn = 2; turn < 6; ++turn) {
    store(tokens);
    ends.push_back(tokens);
    tokens = tokens + some_tokens(turn, 18);
  }
  EXPECT_EQ(stats().superseded_blocks, 2u);
  EXPECT_EQ(load(ends[3] + Tokens{1}), ends[3].size());
  EXPECT_EQ(load(ends[2] + Tokens{1}), ends[2].size());
  EXPECT_EQ(load(ends[1] + Tokens{1}), 0u);
}

// Callers with keys of their own.
class PrefixTableTest : public PrefixCacheTest {
 protected:
  PrefixTableTest() {
    store_.options.preload_min_blocks = 1;
    open();
    for (uint64_t k = 0; k < 5; ++k) {
      store_.save(testing::blk(k));
      chain_.push_back(testing::blk(k).hash);
    }
  }
  // All blocks on disk only, and a cache and pool that have just been opened.
  void restart() {
    open();
    by_keys_ = std::make_unique<PrefixCache>(*pool_, store_.cache.get());
  }
  ~PrefixTableTest() override { by_keys_.reset(); }
  BlockTable table_of(const std::vector<BlockHash>& keys) {
    BlockTable table{"request", {}, 0, nullptr};
    for (const BlockHash& key : keys) {
      table.block_ids.push_back(*pool_->allocate());
      pool_->register_hash(table.block_ids.back(), key);
    }
    return table;
  }
  uint64_t hot_blocks() { return store_.cache->stats().hot_cache_entries; }

  std::vector<BlockHash> chain_;
  std::unique_ptr<PrefixCache> by_keys_;
};

TEST_F(PrefixTableTest, PreloadsTheBlocksOfATableInItsOrder) {
  proves("PFX-01");
  restart();
  store_.executor->run_during([&] { EXPECT_EQ(by_keys_->preload_blocks(table_of(chain_)), 5u); });
  EXPECT_EQ(hot_blocks(), 5u);
}

TEST_F(PrefixTableTest, WithoutACacheATableOrKeysThereIsNothingToPreload) {
  proves("PFX-02");
  restart();
  PrefixCache alone(*pool_, nullptr);
  EXPECT_EQ(alone.preload_blocks(table_of(chain_)), 0u);
  EXPECT_EQ(by_keys_->preload_blocks({}), 0u);
  BlockTable table = table_of({chain_[0], chain_[1]});
  table.block_ids.insert(table.block_ids.begin() + 1, *pool_->allocate());  // Has no key.
  table.block_ids.push_back(999);                                           // Was never given out.
  store_.executor->run_during([&] { EXPECT_EQ(by_keys_->preload_blocks(table), 2u); });
}

TEST_F(PrefixTableTest, BlocksAfterAGapAreNotPreloaded) {
  proves("PFX-03", "DEF-65");
  restart();
  const BlockTable table = table_of(chain_);
  ASSERT_TRUE(*store_.cache->delete_block(chain_[2]));
  store_.executor->run_during([&] { EXPECT_EQ(by_keys_->preload_blocks(table), 2u); });
  EXPECT_EQ(hot_blocks(), 2u);
}

TEST_F(PrefixTableTest, AnIncompatibleBlockIsForgottenByPoolAndCache) {
  proves("PFX-04");
  restart();
  const BlockTable table = table_of(chain_);
  by_keys_->forget_incompatible(chain_[1]);
  EXPECT_FALSE(pool_->find(chain_[1]).has_value());
  EXPECT_FALSE(store_.cache->has_block(chain_[1]));
  EXPECT_EQ(store_.cache->why(chain_[1]).reason, MissReason::kForgotten);
  EXPECT_TRUE(store_.disk->read_all(block_path(chain_[1])).has_value());
}

TEST_F(PrefixTableTest, MatchesTheLongestRunOfKeysAndHoldsIt) {
  proves("RUL-25", "RUL-41");
  restart();
  ASSERT_TRUE(*store_.cache->delete_block(chain_[3]));
  {
    const BlockTable table = by_keys_->match("r1", chain_);
    EXPECT_EQ(table.request_id, "r1");
    EXPECT_EQ(table.block_ids.size(), 3u);
    EXPECT_EQ(table.num_tokens, 3 * kBlock);
    EXPECT_EQ(pool_->find(chain_[2]), table.block_ids[2]);
    EXPECT_FALSE(store_.cache->delete_block(chain_[2]).ok());
  }
  EXPECT_TRUE(store_.cache->delete_block(chain_[2]).ok());
  EXPECT_EQ(prefixes_->match("r2", {}).block_ids.size(), 0u);
}

TEST_F(PrefixTableTest, CallsThatTakeTokensNeedANamespace) {
  restart();
  const Tokens tokens = some_tokens(1, 32);
  EXPECT_EQ(by_keys_->match({tokens, {}, {}}).status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(by_keys_->store({tokens}, state_after(tokens)).status().code(),
            Code::kFailedPrecondition);
  EXPECT_EQ(by_keys_->load({}).tokens, 0u);
}

}  // namespace
}  // namespace kvkeep
