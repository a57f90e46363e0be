// Slots that are kept whole: which prompts find them, and what happens to those that are damaged.

#include "daemon/slots/whole_slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

#include "kvkeep/chain_keys.h"
#include "testing/temp_dir.h"

namespace kvkeep::daemon {
namespace {

using std::filesystem::path;
using ::testing::ElementsAre;

using Tokens = std::vector<uint32_t>;

Tokens prompt(size_t size, uint32_t first = 1) {
  Tokens tokens(size);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

Tokens joined(Tokens tokens, const Tokens& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

// What a slot file holds, told from others by what it says.
Tensor file_of(const std::string& content) {
  const auto bytes = std::make_shared<const std::string>(content);
  return {DType::kU8, {content.size()}, SharedBytes{bytes, std::as_bytes(std::span(*bytes))}};
}

class WholeSlotsTest : public ::testing::Test {
 protected:
  void SetUp() override { open(); }

  static Namespace fields(const std::string& build) {
    return {{"build", build}, {"model_digest", "m"}};
  }
  void open(const Namespace& identity = fields("b1")) {
    cache_.reset();
    Options options;
    options.cache_dir = dir_.path();
    options.max_size_bytes = 64 << 20;
    options.identity = identity;
    options.hot_max_bytes = 0;  // So that each load reads the disk.
    Result<std::unique_ptr<TieredBlockCache>> opened =
        TieredBlockCache::open(std::move(options), {});
    ASSERT_TRUE(opened.ok()) << opened.status().to_string();
    cache_ = *std::move(opened);
  }
  WholeSlots slots(const std::string& build = "b1") {
    Result<WholeSlots> opened = WholeSlots::open(*cache_, fields(build), "model");
    EXPECT_TRUE(opened.ok()) << opened.status().to_string();
    return *std::move(opened);
  }
  void keep(const Tokens& tokens, const std::string& content, const std::string& salt = "") {
    WholeSlots to = slots();
    const Result<StoreReport> kept = to.keep(tokens, file_of(content), salt);
    ASSERT_TRUE(kept.ok() && kept->refused.ok());
    EXPECT_EQ(kept->stored_blocks + kept->present_blocks, 1u);
    ASSERT_TRUE(cache_->flush().ok());
  }
  // What is stored of the beginning of a prompt; empty if nothing is.
  std::string found(const Tokens& tokens, const std::string& salt = "") {
    WholeSlots in = slots();
    const Result<PrefixMatch> match = in.match(tokens, salt);
    EXPECT_TRUE(match.ok()) << match.status().to_string();
    EXPECT_EQ(match->tokens == 0, match->end == MissReason::kAbsent);
    if (match->tokens == 0) return "";
    const Result<Tensor> file = in.load(*match);
    EXPECT_TRUE(file.ok()) << file.status().to_string();
    if (!file.ok()) return "";
    const std::span<const std::byte> bytes = file->data.view;
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  testing::TempDir dir_;
  std::unique_ptr<TieredBlockCache> cache_;
};

TEST_F(WholeSlotsTest, APromptThatGoesOnFindsASlotOfAnyLength) {
  // Keys are made in runs of 64 tokens.
  for (const size_t size : {1, 2, 63, 64, 65, 127, 128, 129, 500}) {
    const auto first = static_cast<uint32_t>(1000 * size);
    keep(prompt(size, first), "slot " + std::to_string(size));
    for (const size_t more : {1, 64, 100}) {
      EXPECT_EQ(found(prompt(size + more, first)), "slot " + std::to_string(size)) << more;
    }
    EXPECT_EQ(found(prompt(size, first)), "") << "the last token has to be computed";
    EXPECT_EQ(found(prompt(size - 1, first)), "");
  }
}

// Stores that exist depend on it.
TEST_F(WholeSlotsTest, KeysAreThoseOfBlocksOf64TokensWithAPartialLastOne) {
  const ChainOptions how{.block_size = 64, .fields = fields("b1"), .partial = true};
  for (const size_t size : {1, 63, 64, 65, 128, 150}) {
    const Tokens tokens = prompt(size);
    keep(tokens, "slot");
    EXPECT_TRUE(cache_->has_block(chain_keys(tokens, how)->back())) << size;
  }
}

TEST_F(WholeSlotsTest, TheLongestSlotIsFoundAlsoByAnotherProcess) {
  keep(prompt(100), "one turn");
  keep(prompt(200), "two turns");
  keep(joined(prompt(100), prompt(100, 7000)), "another answer");
  open();
  EXPECT_EQ(found(prompt(250)), "two turns");
  EXPECT_EQ(found(prompt(200)), "one turn");
  EXPECT_EQ(found(joined(prompt(100), prompt(120, 7000))), "another answer");
}

TEST_F(WholeSlotsTest, AnotherChatWithTheSameBeginningFindsNothing) {
  keep(joined(prompt(100), prompt(20, 5000)), "a chat");
  EXPECT_EQ(found(joined(prompt(100), prompt(60, 6000))), "");
  Tokens tokens = joined(prompt(100), prompt(60, 5000));
  for (const size_t at : {0, 63, 64, 119}) {
    Tokens other = tokens;
    other[at] ^= 1;
    EXPECT_EQ(found(other), "") << at;
  }
  EXPECT_EQ(found(tokens), "a chat");
}

TEST_F(WholeSlotsTest, SaltsAreKeptApart) {
  keep(prompt(100), "hers", "a");
  keep(prompt(90), "everybody's");
  EXPECT_EQ(found(prompt(120), "a"), "hers");
  EXPECT_EQ(found(prompt(120), "b"), "");
  EXPECT_EQ(found(prompt(120)), "everybody's");
}

TEST_F(WholeSlotsTest, ADamagedSlotIsNotLoaded) {
  keep(prompt(100), std::string(5000, 'x'));
  WholeSlots in = slots();
  const Result<PrefixMatch> match = in.match(prompt(120), "");
  ASSERT_TRUE(match.ok() && match->tokens == 100);
  const path file = cache_->block_path(match->blocks[0].key);
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(static_cast<std::streamoff>(std::filesystem::file_size(file)) - 100)
      .put('y');
  const Result<Tensor> loaded = in.load(*match);
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.status().miss_reason(), MissReason::kDamaged);
  EXPECT_EQ(found(prompt(120)), "") << "it has left the store";
}

TEST_F(WholeSlotsTest, WhatOtherBuildsStoredIsFoundElsewhereOnly) {
  keep(prompt(100), "short");
  keep(prompt(150), "long");
  keep(prompt(170), "salted", "a");
  open(fields("b2"));
  WholeSlots other = slots("b2");
  EXPECT_EQ(other.match(prompt(200), "")->tokens, 0u);
  const auto elsewhere = other.find_elsewhere(prompt(200), dir_.path());
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.status().to_string();
  ASSERT_EQ(elsewhere->size(), 1u);
  EXPECT_EQ(elsewhere->front().tokens, 150u);
  ASSERT_EQ(elsewhere->front().where.differences.size(), 1u);
  const FieldDifference& difference = elsewhere->front().where.differences[0];
  EXPECT_EQ(difference.name, "build");
  EXPECT_EQ(difference.stored, "b1");
  EXPECT_EQ(difference.asked, "b2");
  EXPECT_TRUE(other.find_elsewhere(prompt(100), dir_.path())->empty());
  open();
  EXPECT_TRUE(slots().find_elsewhere(prompt(200), dir_.path())->empty()) << "that is here";
}

TEST_F(WholeSlotsTest, TheNamespaceThatDiffersLeastComesFirst) {
  const Namespace far{{"adapter", "x"}, {"model_digest", "other"}};
  open(far);
  ASSERT_TRUE(WholeSlots::open(*cache_, far, "")->keep(prompt(180), file_of("far"), "").ok());
  open();
  keep(prompt(100), "near");
  open(fields("b2"));
  const auto found = slots("b2").find_elsewhere(prompt(200), dir_.path());
  ASSERT_TRUE(found.ok());
  std::vector<std::pair<uint64_t, size_t>> differing;
  for (const OtherWholeSlot& one : *found) {
    differing.emplace_back(one.tokens, one.where.differences.size());
  }
  EXPECT_THAT(differing, ElementsAre(std::pair(100, 1), std::pair(180, 3)));
}

TEST_F(WholeSlotsTest, NoTokensAreNoSlot) {
  const Result<StoreReport> kept = slots().keep({}, file_of("nothing"), "");
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ(kept->stored_blocks, 0u);
  EXPECT_EQ(found({}), "");
  EXPECT_EQ(found({1}), "");
  EXPECT_TRUE(slots().find_elsewhere({}, dir_.path())->empty());
}

}  // namespace
}  // namespace kvkeep::daemon
