// Keys of a long prompt, by either recipe.
#include <string>
#include <vector>

#include "base/bytes.h"
#include "harness.h"
#include "hash/sha256.h"
#include "kvkeep/chain_keys.h"

namespace kvkeep::bench {
namespace {

constexpr size_t kTokens = 128 << 10;
constexpr uint32_t kVocabulary = 151'936;

std::vector<uint32_t> prompt() {
  std::vector<uint32_t> tokens(kTokens);
  for (size_t i = 0; i < kTokens; ++i) {
    tokens[i] = static_cast<uint32_t>(i * 2'654'435'761 % kVocabulary);
  }
  return tokens;
}

// What a recipe digests of the tokens themselves.
std::string digested(const std::vector<uint32_t>& tokens, KeyRecipe recipe) {
  if (recipe == KeyRecipe::kKvkeep1) return std::string(as_text(std::as_bytes(std::span(tokens))));
  std::string text;
  for (const uint32_t token : tokens) text += std::to_string(token) + ", ";
  return text;
}

void bench_recipe(KeyRecipe recipe, uint32_t block_size) {
  const std::vector<uint32_t> tokens = prompt();
  const std::string bytes = digested(tokens, recipe);
  const ChainOptions options{
      .block_size = block_size, .fields = {{"model", "org/a-model"}}, .recipe = recipe};
  Sha256 sha;
  Contest contest;
  contest.name = std::string(name_of(recipe)) + " keys, blocks of " + std::to_string(block_size);
  contest.baseline = "one SHA-256 over the same bytes";
  contest.ours = [&] {
    const auto keys = chain_keys(tokens, options);
    require(keys.ok() && keys->size() == kTokens / block_size, "chain_keys");
  };
  contest.theirs = [&] {
    sha.start();
    sha.add(as_byte_span(bytes));
    require(sha.finish().ok(), "SHA-256");
  };
  contest.tokens = kTokens;
  compare(contest);
}

}  // namespace

void bench_keys() {
  for (const KeyRecipe recipe : {KeyRecipe::kKvkeep1, KeyRecipe::kOmlx1}) {
    for (const uint32_t block_size : {16, 256}) bench_recipe(recipe, block_size);
  }
}

}  // namespace kvkeep::bench
