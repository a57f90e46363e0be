#include "kvkeep/chain_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "testing/proves.h"

namespace kvkeep {
namespace {

using Tokens = std::vector<uint32_t>;
using Extras = std::vector<Extra>;

std::vector<std::byte> bytes_of(std::initializer_list<uint8_t> values) {
  std::vector<std::byte> bytes;
  for (uint8_t value : values) bytes.push_back(std::byte{value});
  return bytes;
}

std::string hex(const Result<BlockHash>& key) {
  return key.ok() ? key->to_hex() : key.status().to_string();
}

BlockHash root_of(const Namespace& fields) { return *KeyChain::open(fields)->root(); }

Result<BlockHash> first_key(const Namespace& fields, const Tokens& tokens,
                            const Extras& extras = {}) {
  return KeyChain::open(fields)->next({}, tokens, extras);
}

std::vector<std::string> keys_of(const Tokens& tokens, const ChainOptions& options) {
  const auto keys = chain_keys(tokens, options);
  if (!keys.ok()) return {keys.status().to_string()};
  std::vector<std::string> texts;
  for (const BlockHash& key : *keys) texts.push_back(key.to_hex());
  return texts;
}

TEST(ChainKeys, PublishedVectorsHold) {
  testing::proves("RUL-19");
  EXPECT_EQ(root_of({}).to_hex(),
            "f709609f5b906d8c174099116e461ab20b80e154595a261163537ca831346bb1");
  const auto chain = KeyChain::open({{"model", "org/モデル"}, {"salt", "t1"}});
  EXPECT_EQ(chain->root()->to_hex(),
            "ac8fcc20d53bf931cf654678745ab9cf6e05ebf219fa991e2fd859d7d90f2889");
  const auto first = chain->next({}, Tokens{1, 2, 3, 4});
  EXPECT_EQ(hex(first), "d215ddaab830c9bbf5021136eb94a39b152b5e8104a956bdd3e0141d5e49aa1b");
  const Extras extras = {"img:ab", bytes_of({0x00, 0xff}), int64_t{-1}};
  EXPECT_EQ(hex(chain->next(*first, Tokens{5, 6, 7, 4294967295}, extras)),
            "f28774e7be39f374fc7f54860589130e41e889e388ccb9263d066e9933f3704d");
  EXPECT_EQ(hex(first_key({}, Tokens{0})),
            "4dd39cd12c3b17ef3b84cd0aa5f72a860064b1fd44b7f18021d5120ad5bb2b46");
}

TEST(ChainKeys, ARootIsTheParentOfAFirstBlock) {
  const auto chain = KeyChain::open({{"model", "m"}});
  EXPECT_EQ(hex(chain->next(chain->root(), Tokens{1})), hex(chain->next({}, Tokens{1})));
}

ChainOptions random_options(std::mt19937& random) {
  ChainOptions options;
  options.block_size = 1 + random() % 40;
  options.partial = random() % 2 == 0;
  if (random() % 2 == 0) options.recipe = KeyRecipe::kOmlx1;
  if (random() % 2 == 0) options.fields["model"] = std::to_string(random());
  options.extras.resize(random() % 4);
  for (Extras& extras : options.extras) {
    if (random() % 2 == 0) extras.emplace_back(static_cast<int64_t>(random()));
  }
  return options;
}

std::vector<std::string> keys_one_by_one(std::span<const uint32_t> rest,
                                         const ChainOptions& options) {
  std::vector<std::string> keys;
  const KeyChain chain = *KeyChain::open(options.fields, options.recipe);
  std::optional<BlockHash> parent;
  for (size_t block = 0; !rest.empty(); ++block) {
    const auto own = rest.first(std::min<size_t>(rest.size(), options.block_size));
    if (own.size() < options.block_size && !options.partial) break;
    parent =
        *chain.next(parent, own, block < options.extras.size() ? options.extras[block] : Extras{});
    keys.push_back(parent->to_hex());
    rest = rest.subspan(own.size());
  }
  return keys;
}

TEST(ChainKeys, KeysOfAPromptAreTheKeysTakenBlockByBlock) {
  std::mt19937 random(20240607);
  for (int round = 0; round < 300; ++round) {
    const ChainOptions options = random_options(random);
    Tokens tokens(random() % 200);
    for (uint32_t& token : tokens) token = static_cast<uint32_t>(random());
    ASSERT_EQ(keys_of(tokens, options), keys_one_by_one(tokens, options)) << "round " << round;
  }
}

TEST(ChainKeys, KeysOfAPrefixAreAPrefixOfTheKeys) {
  Tokens tokens(100);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<uint32_t>(i * 7919);
  const auto whole = keys_of(tokens, {.block_size = 16});
  ASSERT_EQ(whole.size(), 6u);
  for (size_t count = 0; count <= tokens.size(); ++count) {
    const auto some = keys_of(Tokens(tokens.begin(), tokens.begin() + static_cast<long>(count)),
                              {.block_size = 16});
    ASSERT_EQ(some.size(), count / 16);
    ASSERT_TRUE(std::equal(some.begin(), some.end(), whole.begin()));
  }
}

TEST(ChainKeys, AChangedTokenChangesItsBlockAndAllAfterIt) {
  Tokens tokens(64, 5);
  const auto before = keys_of(tokens, {.block_size = 16});
  tokens[20] = 6;
  const auto after = keys_of(tokens, {.block_size = 16});
  EXPECT_EQ(before[0], after[0]);
  for (size_t block = 1; block < before.size(); ++block) EXPECT_NE(before[block], after[block]);
}

TEST(ChainKeys, DifferentNamespacesNeverRunTogether) {
  const std::vector<Namespace> spaces = {
      {},
      {{"", ""}},
      {{"", "model"}},
      {{"model", ""}},
      {{"model", "a"}},
      {{"model", "a"}, {"salt", ""}},
      {{"model", "as"}, {"alt", ""}},
      {{"model", "a"}, {"salt", "b"}},
      {{"model", "b"}, {"salt", "a"}},
      {{"modela", ""}, {"salt", "b"}},
      {{"model", "asaltb"}},
      {{"model", std::string("a\0", 2)}},
      {{"model", "A"}},
      {{"adapter", "a"}},
      {{"\xc3\xa9", "a"}},   // One code point.
      {{"e\xcc\x81", "a"}},  // The same letter from two: no normalisation.
  };
  std::map<std::string, size_t> seen;
  for (size_t i = 0; i < spaces.size(); ++i) {
    const auto [other, fresh] = seen.emplace(root_of(spaces[i]).to_hex(), i);
    EXPECT_TRUE(fresh) << i << " equals " << other->second;
  }
}

TEST(ChainKeys, DifferentTokensAndExtrasNeverRunTogether) {
  struct Case {
    Tokens tokens;
    Extras extras;
  };
  const std::vector<Case> cases = {
      {{}, {}},
      {{0}, {}},
      {{0, 0}, {}},
      {{1}, {}},
      {{1, 0}, {}},
      {{0, 1}, {}},
      {{256}, {}},
      {{4294967295}, {}},
      {{}, {Extra(std::string())}},
      {{}, {Extra(bytes_of({}))}},
      {{}, {Extra(int64_t{0})}},
      {{}, {Extra(bytes_of({0, 0, 0, 0, 0, 0, 0, 0}))}},
      {{}, {Extra(std::string(8, '\0'))}},
      {{}, {Extra(std::string("ab"))}},
      {{}, {Extra(bytes_of({'a', 'b'}))}},
      {{}, {Extra(std::string("a")), Extra(std::string("b"))}},
      {{}, {Extra(std::string("b")), Extra(std::string("a"))}},
      {{}, {Extra(std::string("ab")), Extra(std::string())}},
      {{}, {Extra(std::string()), Extra(std::string("ab"))}},
      {{0}, {Extra(int64_t{0})}},
      {{}, {Extra(int64_t{-1})}},
      {{}, {Extra(int64_t{4294967295})}},
      {{1, 2}, {Extra(int64_t{3})}},
      {{1}, {Extra(int64_t{2}), Extra(int64_t{3})}},
  };
  std::map<std::string, size_t> seen;
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto key = first_key({}, cases[i].tokens, cases[i].extras);
    const auto [other, fresh] = seen.emplace(hex(key), i);
    EXPECT_TRUE(fresh) << i << " equals " << other->second;
  }
}

TEST(ChainKeys, ExtrasBelongToTheirBlockOnly) {
  const Tokens tokens(8, 1);
  const auto plain = keys_of(tokens, {.block_size = 4});
  ChainOptions second{.block_size = 4};
  second.extras = {{}, {Extra(std::string("img"))}};
  const auto keys = keys_of(tokens, second);
  EXPECT_EQ(keys[0], plain[0]);
  EXPECT_NE(keys[1], plain[1]);
  second.extras = {{}, {}, {Extra(std::string("beyond the last block"))}};
  EXPECT_EQ(keys_of(tokens, second), plain);
}

TEST(ChainKeys, OnlyWhatCannotBeAKeyIsRefused) {
  const std::string broken = "\xff";
  const BlockHash short_parent = *BlockHash::from_bytes(bytes_of({1, 2, 3}));
  ChainOptions no_size;
  ChainOptions bad_extra{.block_size = 1};
  bad_extra.extras = {{Extra(broken)}};
  const std::vector<std::pair<Status, std::string>> refused = {
      {KeyChain::open({{broken, "a"}}).status(), "name"},
      {KeyChain::open({{"model", broken}}).status(), "model"},
      {KeyChain::open({{"model", "\xed\xa0\x80"}}).status(), "UTF-8"},
      {KeyChain::open({})->next(short_parent, Tokens{1}).status(), "parent"},
      {first_key({}, Tokens{1}, {Extra(broken)}).status(), "text extra"},
      {chain_keys(Tokens{1}, no_size).status(), "block_size"},
      {chain_keys(Tokens{1}, bad_extra).status(), "text extra"},
      {key_recipe_from_name("omlx").status(), "kvkeep-1 and omlx-1"},
  };
  for (const auto& [status, word] : refused) {
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << word;
    EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
  }
  EXPECT_TRUE(first_key({}, Tokens{1}, {Extra(bytes_of({0xff}))}).ok());
}

TEST(ChainKeys, RecipesHaveNames) {
  for (const KeyRecipe recipe : {KeyRecipe::kKvkeep1, KeyRecipe::kOmlx1}) {
    EXPECT_EQ(*key_recipe_from_name(name_of(recipe)), recipe);
  }
  EXPECT_NE(name_of(KeyRecipe::kKvkeep1), name_of(KeyRecipe::kOmlx1));
}

}  // namespace
}  // namespace kvkeep
