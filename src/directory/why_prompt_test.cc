// Prompts that a prefix cache stored, asked about in the directory that it left.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "directory/why.h"
#include "kvkeep/prefix_cache.h"
#include "testing/prompts.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using testing::some_tokens;
using testing::Tokens;
using testing::operator+;

constexpr uint32_t kBlock = 16;  // Tokens of a block.

class WhyPromptTest : public ::testing::Test {
 protected:
  // Stores the prompt as a cache of this namespace, and closes it.
  void store(const Tokens& tokens, const Namespace& fields, uint32_t block_size = kBlock,
             KeyRecipe recipe = KeyRecipe::kKvkeep1, PartialTails tails = PartialTails::kNone) {
    store_.options.block_size = block_size;
    store_.open();
    BlockPool pool(block_size, 100);
    {
      PrefixOptions options;
      options.fields = fields;
      options.recipe = recipe;
      options.partial_tails = tails;
      const auto prefixes = PrefixCache::open(pool, *store_.cache, options);
      ASSERT_TRUE(prefixes.ok()) << prefixes.status().to_string();
      const auto report = (*prefixes)->store({tokens, {}, {}}, testing::state_after(tokens));
      ASSERT_TRUE(report.ok() && report->refused.ok());
    }
    store_.close();
  }
  PromptAnswer ask(const Tokens& tokens, const Namespace& fields, uint32_t block_size = kBlock,
                   KeyRecipe recipe = KeyRecipe::kKvkeep1) {
    PromptQuestion question{tokens, fields, block_size, recipe};
    question.progress = [this](uint64_t, uint64_t) { ++steps_; };
    auto answer = why_prompt(*store_.disk, "/store", question);
    EXPECT_TRUE(answer.ok()) << answer.status().to_string();
    return answer.ok() ? *std::move(answer) : PromptAnswer{};
  }
  static bool has(const PromptAnswer& answer, const std::string& text) {
    return answer.text.find(text) != std::string::npos;
  }
  std::string path_of(const BlockHash& key) { return block_path(key); }

  testing::TestStore store_;
  uint64_t steps_ = 0;
  const Namespace fields_{{"build", "b1234"}, {"model", "m"}};
  const Tokens tokens_ = some_tokens(1, 70);
};

TEST_F(WhyPromptTest, AStoredPromptIsAHitBlockByBlock) {
  store(tokens_, fields_);
  const PromptAnswer answer = ask(tokens_, fields_);
  EXPECT_EQ(answer.reason, std::nullopt) << answer.text;
  EXPECT_EQ(answer.tokens, 64u);
  EXPECT_EQ(answer.full_blocks, 4u);
  ASSERT_EQ(answer.blocks.size(), 4u);
  EXPECT_EQ(answer.blocks[3].first_token, 48u);
  EXPECT_EQ(answer.blocks[3].token_count, 16u);
  EXPECT_EQ(answer.blocks[3].file_size,
            store_.disk->read_all(path_of(answer.blocks[3].key))->size());
  EXPECT_TRUE(has(answer, "64 of 70 tokens are there, in 4 blocks")) << answer.text;
  EXPECT_EQ(steps_, 4u);
}

TEST_F(WhyPromptTest, AnotherPromptBreaksWhereItDiffers) {
  store(tokens_, fields_);
  const Tokens other = Tokens(tokens_.begin(), tokens_.begin() + 40) + some_tokens(9, 40);
  const PromptAnswer answer = ask(other, fields_);
  EXPECT_EQ(answer.reason, MissReason::kAbsent);
  EXPECT_EQ(answer.tokens, 32u);
  ASSERT_EQ(answer.blocks.size(), 3u);
  EXPECT_EQ(answer.stranded_blocks, 0u);
  EXPECT_TRUE(has(answer, "tokens 32 to 47: absent")) << answer.text;
}

TEST_F(WhyPromptTest, ADamagedBlockEndsItAndThoseBehindAreCounted) {
  store(tokens_, fields_);
  const std::string path = path_of(ask(tokens_, fields_).blocks[1].key);
  std::string bytes = *store_.disk->read_all(path);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  store_.disk->write_all(path, bytes);
  const PromptAnswer answer = ask(tokens_, fields_);
  EXPECT_EQ(answer.reason, MissReason::kDamaged);
  EXPECT_EQ(answer.tokens, 16u);
  EXPECT_EQ(answer.stranded_blocks, 2u);
  const auto json = nlohmann::json::parse(to_json(answer));
  EXPECT_EQ(json["state"], "damaged");
  EXPECT_EQ(json["blocks"][1]["first_token"], 16);
  EXPECT_EQ(json["stranded_blocks"], 2);
}

TEST_F(WhyPromptTest, TheFieldThatDiffersIsNamed) {
  store(tokens_, fields_);
  store(tokens_, {{"adapter", "a"}, {"build", "b1100"}, {"model", "m"}});
  const PromptAnswer answer = ask(tokens_, {{"build", "b1240"}, {"model", "m"}});
  EXPECT_EQ(answer.reason, MissReason::kAbsent);
  EXPECT_TRUE(has(answer, "stored for build 'b1234'; asked for build 'b1240'")) << answer.text;
  ASSERT_EQ(answer.elsewhere.size(), 2u);
  EXPECT_EQ(answer.elsewhere[0].differences.size(), 1u) << "the nearest comes first";
  EXPECT_EQ(answer.elsewhere[1].name_space.fields.at("adapter"), "a");
  const auto json = nlohmann::json::parse(to_json(answer));
  EXPECT_EQ(json["elsewhere"][0]["differences"][0]["stored"], "b1234");
  EXPECT_EQ(ask(some_tokens(2, 70), {{"model", "m"}}).elsewhere.size(), 0u)
      << "these tokens are stored for nobody";
}

TEST_F(WhyPromptTest, AnotherSaltIsToldWithoutEither) {
  Namespace salted = fields_;
  salted["salt"] = "hush";
  store(tokens_, salted);
  Namespace other = fields_;
  other["salt"] = "quiet";
  const PromptAnswer answer = ask(tokens_, other);
  EXPECT_TRUE(has(answer, "stored with another salt")) << answer.text;
  const std::string json = to_json(answer);
  EXPECT_EQ(json.find("hush"), std::string::npos);
  EXPECT_EQ(json.find("quiet"), std::string::npos);
  EXPECT_EQ(ask(tokens_, salted).reason, std::nullopt);
}

TEST_F(WhyPromptTest, AnotherBlockSizeIsToldByEitherRecipe) {
  for (const KeyRecipe recipe : {KeyRecipe::kKvkeep1, KeyRecipe::kOmlx1}) {
    const Namespace fields{{"model", "m"}};
    store(tokens_, fields, kBlock, recipe);
    const PromptAnswer answer = ask(tokens_, fields, 64, recipe);
    EXPECT_EQ(answer.stored_block_size, kBlock) << name_of(recipe);
    EXPECT_TRUE(has(answer, "stored in blocks of 16 tokens; asked for blocks of 64"))
        << answer.text;
    EXPECT_EQ(nlohmann::json::parse(to_json(answer))["stored_block_size"], 16);
  }
}

TEST_F(WhyPromptTest, APartialBlockIsFoundToo) {
  store(tokens_, fields_, kBlock, KeyRecipe::kKvkeep1, PartialTails::kAll);
  const PromptAnswer answer = ask(tokens_ + some_tokens(3, 5), fields_);
  EXPECT_EQ(answer.reason, std::nullopt);
  EXPECT_EQ(answer.tokens, 70u);
  EXPECT_EQ(answer.blocks.back().first_token, 64u);
}

TEST_F(WhyPromptTest, APromptShorterThanABlockIsAbsent) {
  store(tokens_, fields_);
  const PromptAnswer answer = ask(some_tokens(1, 5), fields_);
  EXPECT_EQ(answer.reason, MissReason::kAbsent);
  EXPECT_TRUE(answer.blocks.empty());
  EXPECT_TRUE(has(answer, "nothing of the prompt is there; absent")) << answer.text;
}

TEST_F(WhyPromptTest, ABlockOfOtherTokensUnderTheSameKeyIsTold) {
  store_.open();
  const BlockHash key = *KeyChain::open(fields_)->next({}, std::span(tokens_).first(kBlock));
  testing::TestBlock block = testing::blk(1);
  block.input.tokens = *token_digest(std::span(tokens_).last(kBlock));
  ASSERT_TRUE(store_.cache->save_block(key, std::move(block.input)).ok());
  store_.close();
  EXPECT_EQ(ask(tokens_, fields_).reason, MissReason::kTokens);
}

TEST_F(WhyPromptTest, NothingIsWritten) {
  store(tokens_, fields_);
  const auto watched = std::make_shared<testing::FaultyFileSystem>(store_.disk);
  PromptQuestion question{tokens_, {{"model", "other"}}, kBlock};
  EXPECT_TRUE(why_prompt(*watched, "/store", question).ok());
  EXPECT_TRUE(watched->changes().empty());
}

TEST_F(WhyPromptTest, AQuestionThatMakesNoSenseIsRefused) {
  store_.open();
  for (const PromptQuestion& bad :
       {PromptQuestion{{}, {}, kBlock}, PromptQuestion{tokens_, {}, 0},
        PromptQuestion{tokens_, {{"build", "b"}}, kBlock, KeyRecipe::kOmlx1}}) {
    EXPECT_EQ(why_prompt(*store_.disk, "/store", bad).status().code(), Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace kvkeep
