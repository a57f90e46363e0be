// The figures were printed by oMLX's own function.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/bytes.h"
#include "hash/sha256.h"
#include "kvkeep/chain_keys.h"
#include "testing/proves.h"

namespace kvkeep {
namespace {

using Tokens = std::vector<uint32_t>;
using Extras = std::vector<Extra>;
using Parent = std::optional<BlockHash>;

KeyChain chain_of(const std::string& model) {
  return *KeyChain::open({{"model", model}}, KeyRecipe::kOmlx1);
}

std::string key(const std::string& model, const Parent& parent, const Tokens& tokens,
                const Extras& extras = {}) {
  const auto next = chain_of(model).next(parent, tokens, extras);
  return next.ok() ? next->to_hex() : next.status().to_string();
}

std::string sha256(std::string_view text) {
  Sha256 sha;
  sha.start();
  sha.add(as_byte_span(text));
  return to_hex(*sha.finish());
}

TEST(OmlxKeys, ChainsArePublished) {
  testing::proves("RUL-19");
  const std::string first = key("test-model", {}, {1, 2, 3, 4});
  EXPECT_EQ(first, "eccd492fb02022cf654b44da617cf8fb3caa40d7ae912bc473a99850f294f768");
  const std::string second = key("test-model", *BlockHash::from_hex(first), {5, 6, 7, 8});
  EXPECT_EQ(second, "ee54080dd391db972147df525bb9e7d56d4c7f74383510a2390dda6aca49b42d");
  EXPECT_EQ(key("test-model", *BlockHash::from_hex(second), {9, 10, 11, 12}, {"img"}),
            "7a5267b97ec292291c0939db962d811869022f80aeef480ed5875d7e52ee0f49");
}

TEST(OmlxKeys, FirstBlocksArePublished) {
  testing::proves("RUL-19");
  EXPECT_EQ(key("", {}, {1, 2, 3, 4}),
            "2feaaca2a94b2a2dee4d7445e77309c19ddacd3b61c00b07a3517825a3661443");
  EXPECT_EQ(key("m", {}, {5}), "1f1a175375835b2f5a562687bdbf8ac2eec61de6857d7498ec4b10a13c9f4ddb");
  EXPECT_EQ(key("m", {}, {}), "4c83d053bf71dd1aab4b124ea965e2322f27ed4458c975bf9e1e48ea3c657ece");
  EXPECT_EQ(key("m", {}, {1}), "5e30d96384349321be917a59c5902f7bbbe6ff1395007b6af2fa6b2a8fb3e2a6");
  std::string digest;
  for (int i = 0; i < 32; ++i) digest += "ab";
  EXPECT_EQ(key("org/Model-4bit", {}, {0, 1, 2, 3, 4, 5, 6, 7}, {digest}),
            "c941358c4c37a8c7bd447731d6d6a9c8afb55adc41766cb8843119ea0200a1b5");
}

TEST(OmlxKeys, LongBlocksAreTheTextOfTheirIds) {
  for (const size_t count : {1u, 2u, 339u, 340u, 341u, 5000u}) {
    std::string text = "momlx-root(";
    Tokens tokens;
    for (size_t i = 0; i < count; ++i) {
      tokens.push_back(static_cast<uint32_t>(4294967295 - i));
      text += (i > 0 ? ", " : "") + std::to_string(tokens.back());
    }
    text += count == 1 ? ",)" : ")";
    ASSERT_EQ(key("m", {}, tokens), sha256(text)) << count;
  }
}

TEST(OmlxKeys, ExtrasAreTheTextOfTheirTuple) {
  const Extras extras = {int64_t{-7}, "it's", std::vector<std::byte>{std::byte{0xff}}};
  EXPECT_EQ(key("", {}, {1, 2}, extras), sha256(R"(omlx-root(1, 2)(-7, "it's", b'\xff'))"));
  const std::string longer(10'000, 'x');
  EXPECT_EQ(key("", {}, {}, {longer, int64_t{1}}), sha256("omlx-root()('" + longer + "', 1)"));
}

TEST(OmlxKeys, AChainHasNoRoot) { EXPECT_FALSE(chain_of("m").root()); }

TEST(OmlxKeys, AnAbsentModelIsAnEmptyOne) {
  EXPECT_EQ(KeyChain::open({}, KeyRecipe::kOmlx1)->next({}, Tokens{1})->to_hex(), key("", {}, {1}));
}

TEST(OmlxKeys, WhatTheRecipeCannotSayIsRefused) {
  ChainOptions options{.block_size = 1, .recipe = KeyRecipe::kOmlx1};
  options.extras = {{Extra("\xe2\x80\x8b")}};  // U+200B
  const std::vector<std::pair<Status, std::string>> refused = {
      {KeyChain::open({{"adapter", ""}}, KeyRecipe::kOmlx1).status(), "adapter"},
      {KeyChain::open({{"model", "m"}, {"salt", "s"}}, KeyRecipe::kOmlx1).status(), "salt"},
      {KeyChain::open({{"model", "\xff"}}, KeyRecipe::kOmlx1).status(), "model: not UTF-8"},
      {chain_of("m").next(*BlockHash::from_hex("aa"), Tokens{1}).status(), "parent"},
      {chain_of("m").next({}, Tokens{1}, Extras{"\xff"}).status(), "text extra: not UTF-8"},
      {chain_keys(Tokens{1}, options).status(), "U+200B"},
  };
  for (const auto& [status, word] : refused) {
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << word;
    EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace kvkeep
