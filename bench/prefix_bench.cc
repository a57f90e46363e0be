// Prompts: looking them up, and their state into the cache and back.
#define XXH_STATIC_LINKING_ONLY  // For a state on the stack.
#include <xxhash.h>

#include <cstring>
#include <unordered_set>

#include "base/bytes.h"
#include "harness.h"
#include "hash/sha256.h"
#include "kvkeep/kvkeep.h"
#include "testing/prompts.h"

namespace kvkeep::bench {
namespace {

volatile uint64_t g_sink;  // Keeps the compiler from leaving the digest out.

// What SmolLM2-135M holds: 30 layers of keys and values [1, 3, tokens, 64] in F16.
constexpr size_t kLayers = 30;
constexpr size_t kHeads = 3;
constexpr size_t kWidth = 64;
constexpr size_t kTokens = 4096;
constexpr uint32_t kBlock = 256;
constexpr double kStateBytes = 2.0 * kLayers * kHeads * kTokens * kWidth * 2;

std::vector<uint32_t> tokens_of(uint64_t seed, size_t count) {
  return testing::some_tokens(seed, count);
}

PromptState state() {
  PromptState made;
  const std::vector<std::byte> bytes(kHeads * kTokens * kWidth * 2, std::byte{7});
  for (size_t i = 0; i < kLayers; ++i) {
    const Shape shape = {1, kHeads, kTokens, kWidth};
    made.layers.push_back(make_pair_state(*tensor_from_bytes(bytes, DType::kF16, shape),
                                          *tensor_from_bytes(bytes, DType::kF16, shape)));
    made.layer_types.push_back("KVCache");
  }
  return made;
}

struct Prefixes {
  explicit Prefixes(Options options, uint32_t block_size)
      : cache(*TieredBlockCache::open(std::move(options))),
        pool(block_size, 100'000),
        prefixes(*PrefixCache::open(pool, *cache, {{{"model", "m"}}})) {}

  std::unique_ptr<TieredBlockCache> cache;
  BlockPool pool;
  std::unique_ptr<PrefixCache> prefixes;
};

Options in_ram() {
  Options options;
  options.hot_only = true;
  options.hot_max_bytes = 4ull << 30;
  options.ram_max_bytes = 6ull << 30;
  return options;
}

void bench_chain_of_keys() {
  Prefixes store(in_ram(), 16);
  const auto tokens = tokens_of(1, 16'000);
  const auto saved = store.prefixes->store({tokens}, testing::state_after(tokens));
  require(saved.ok() && saved->stored_blocks == 1000, "store");
  ChainOptions chain{.block_size = 16, .fields = {{"model", "m"}}};
  const std::vector<BlockHash> keys = *chain_keys(tokens, chain);
  const std::unordered_set<BlockHash> set(keys.begin(), keys.end());
  BlockTable held;
  compare({"match of a chain of 1,000 keys", "look-ups in one hash set",
           [&] {
             held = store.prefixes->match("r", keys);
             require(held.block_ids.size() == 1000, "match");
           },
           [&] {
             size_t found = 0;
             for (const BlockHash& key : keys) found += set.count(key);
             require(found == 1000, "set");
           },
           [&] { held = {}; }});
}

void bench_long_prompt() {
  Prefixes store(in_ram(), 64);
  const auto tokens = tokens_of(1, 100'000);
  const auto saved = store.prefixes->store({tokens}, testing::state_after(tokens));
  require(saved.ok() && saved->tokens == tokens.size(), "store");
  Sha256 sha;
  Contest contest;
  contest.name = "match of 100,000 tokens, blocks of 64";
  contest.baseline = "one SHA-256 over them";
  contest.tokens = 100'000;
  contest.ours = [&] { require(store.prefixes->match({tokens})->tokens == 99'999, "match"); };
  contest.theirs = [&] {
    sha.start();
    sha.add(std::as_bytes(std::span(tokens)));
    require(sha.finish().ok(), "SHA-256");
  };
  compare(contest);
}

void join_all(const LoadedPrefix& prefix, std::vector<std::byte>& into) {
  size_t at = 0;
  for (size_t layer = 0; layer < kLayers; ++layer) {
    const auto joined = join_layer(prefix.blocks, layer, prefix.tokens);
    require(joined.ok(), "join");
    for (const JoinedTensor& tensor : *joined) {
      copy_joined(tensor, std::span(into).subspan(at, tensor.bytes));
      at += tensor.bytes;
    }
  }
}

void bench_hot_prefix() {
  Prefixes store(in_ram(), kBlock);
  auto tokens = tokens_of(1, kTokens);
  require(store.prefixes->store({tokens}, state())->tokens == kTokens, "store");
  tokens.push_back(1);
  std::vector<std::byte> into(static_cast<size_t>(kStateBytes));
  const std::vector<std::byte> from(into.size(), std::byte{1});
  compare({"4,096 tokens from the hot tier, joined", "one copy of their bytes",
           [&] {
             const LoadedPrefix prefix = store.prefixes->load(*store.prefixes->match({tokens}));
             require(prefix.tokens == kTokens, "load");
             join_all(prefix, into);
           },
           [&] { std::memcpy(into.data(), from.data(), from.size()); }, [] {}, kStateBytes});
}

void bench_disk_prefix(const std::string& directory) {
  Options options;
  options.cache_dir = directory + "/prefix";
  options.max_size_bytes = 4ull << 30;
  Prefixes store(options, kBlock);
  auto tokens = tokens_of(1, kTokens);
  require(store.prefixes->store({tokens}, state())->tokens == kTokens, "store");
  require(store.cache->flush().ok(), "flush");
  tokens.push_back(1);
  ChainOptions chain{.block_size = kBlock, .fields = {{"model", "m"}}};
  const std::vector<BlockHash> keys = *chain_keys(tokens, chain);
  compare({"4,096 tokens from disk, as blocks", "load_blocks of their keys",
           [&] {
             const LoadedPrefix prefix = store.prefixes->load(*store.prefixes->match({tokens}));
             require(prefix.tokens == kTokens, "load");
           },
           [&] {
             const BatchResult blocks = store.cache->load_blocks(keys, BatchMode::kPrefix);
             require(blocks.size() == keys.size() && blocks.back().ok(), "load_blocks");
           },
           [] {}, kStateBytes});
}

void copy_and_digest(const PromptState& given, std::vector<std::byte>& into) {
  XXH3_state_t digest;
  XXH3_128bits_reset(&digest);
  size_t at = 0;
  for (const LayerState& layer : given.layers) {
    for (const Element& element : std::get<NState>(layer).elements) {
      const BytesView from = std::get<Tensor>(element.v).data.view;
      std::memcpy(into.data() + at, from.data(), from.size());
      XXH3_128bits_update(&digest, into.data() + at, from.size());
      at += from.size();
    }
  }
  g_sink = XXH3_128bits_digest(&digest).low64;
}

void bench_store() {
  Prefixes store(in_ram(), kBlock);
  const auto tokens = tokens_of(1, kTokens);
  const PromptState given = state();
  std::vector<std::byte> into(static_cast<size_t>(kStateBytes));
  compare({"store of 4,096 tokens", "one copy + digest",
           [&] { require(store.prefixes->store({tokens}, given)->stored_blocks == 16, "store"); },
           [&] { copy_and_digest(given, into); }, [&] { static_cast<void>(store.cache->clear()); },
           kStateBytes});
}

}  // namespace

void bench_prefix(const std::string& directory) {
  bench_chain_of_keys();
  bench_long_prompt();
  bench_hot_prefix();
  bench_disk_prefix(directory);
  bench_store();
}

}  // namespace kvkeep::bench
