// Calls that touch no disk: saving, and loading what is in RAM.
#include <sys/resource.h>
#define XXH_STATIC_LINKING_ONLY  // For a state on the stack.
#include <xxhash.h>

#include <cstring>
#include <unordered_map>

#include "harness.h"
#include "io/buffer_pool.h"
#include "kvkeep/kvkeep.h"
#include "testing/block_builder.h"
#include "testing/block_compare.h"

namespace kvkeep::bench {
namespace {

using testing::TestBlock;

volatile uint64_t g_sink;  // Keeps the compiler from leaving the digest out.

std::string size_name(uint32_t mib) { return std::to_string(mib) + " MiB"; }

std::unique_ptr<TieredBlockCache> open_hot() {
  Options options;
  options.hot_only = true;
  options.hot_max_bytes = 2ull << 30;
  return *TieredBlockCache::open(options);
}

const Tensor& tensor_of(const TestBlock& block, size_t element) {
  return std::get<Tensor>(std::get<NState>(block.input.layers[0]).elements[element].v);
}

// What every save has to do at least: its tensors into memory that is there already, and a digest.
void copy_and_digest(const TestBlock& block, PooledBuffer& into) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  size_t at = 0;
  for (const size_t element : {0, 1}) {
    const BytesView from = tensor_of(block, element).data.view;
    constexpr size_t kPiece = 128 << 10;
    for (size_t done = 0; done < from.size(); done += kPiece) {
      const size_t bytes = std::min(kPiece, from.size() - done);
      std::memcpy(into.data() + at, from.data() + done, bytes);
      XXH3_128bits_update(&state, into.data() + at, bytes);
      at += bytes;
    }
  }
  g_sink = XXH3_128bits_digest(&state).low64;
}

void bench_save(uint32_t mib) {
  const TestBlock block = testing::mib(1, mib);
  const auto cache = open_hot();
  const auto pool = BufferPool::create({.limit_bytes = 1ull << 30});
  PooledBuffer buffer = *pool->allocate((mib + 1ull) << 20);
  copy_and_digest(block, buffer);
  // Building the input is the caller's work.
  BlockInput input = block.input;
  compare({"save call, " + size_name(mib), "one copy + digest",
           [&] { require(cache->save_block(block.hash, std::move(input)).ok(), "save"); },
           [&] { copy_and_digest(block, buffer); },
           [&] {
             static_cast<void>(cache->delete_block(block.hash));
             input = block.input;
           },
           mib * 1048576.0});
}

void bench_hot_load(uint32_t mib) {
  const TestBlock block = testing::mib(1, mib);
  const auto cache = open_hot();
  require(cache->save_block(block.hash, block.input).ok(), "save");
  const auto loaded = cache->load_block_with_info(block.hash);
  require(loaded.ok() && testing::difference(block.input, *loaded).empty(), "hot load");
  std::vector<std::byte> copy(size_t{mib} << 20);
  const BytesView bytes = tensor_of(block, 0).data.view;
  compare({"hot load, " + size_name(mib), "copy of half the block",
           [&] { require(cache->load_block(block.hash).ok(), "hot load"); },
           [&] { std::memcpy(copy.data(), bytes.data(), bytes.size()); }, [] {}, 0, 16});
}

// The writer is kept from running, so the block stays in the queue.
class IdleExecutor : public Executor {
 public:
  void post(std::function<void()>) override {}
  void post_after(Duration, std::function<void()>) override {}
};

void bench_pending_load(const std::string& directory) {
  const TestBlock block = testing::mib(1, 4);
  Options options;
  options.cache_dir = directory + "/pending";
  options.max_size_bytes = 1ull << 30;
  options.close_deadline = Duration::zero();
  Environment environment;
  environment.executor = std::make_shared<IdleExecutor>();
  const auto cache = *TieredBlockCache::open(options, environment);
  const auto hot = open_hot();
  require(cache->save_block(block.hash, block.input).ok(), "save");
  require(hot->save_block(block.hash, block.input).ok(), "save");
  const auto loaded = cache->load_block_with_info(block.hash);
  require(loaded.ok() && testing::difference(block.input, *loaded).empty(), "pending load");
  compare({"pending load, 4 MiB", "hot load",
           [&] { require(cache->load_block(block.hash).ok(), "pending load"); },
           [&] { require(hot->load_block(block.hash).ok(), "hot load"); }, [] {}, 0, 16});
}

void bench_has() {
  const auto cache = open_hot();
  std::unordered_map<BlockHash, int> map;
  std::vector<BlockHash> keys;
  for (uint64_t k = 0; k < 10'000; ++k) {
    const TestBlock block = testing::sized(k, 2048);
    require(cache->save_block(block.hash, block.input).ok(), "save");
    map.emplace(block.hash, 1);
    keys.push_back(block.hash);
  }
  size_t next = 0, other = 0;
  compare({"has_block, 10,000 blocks", "look-up in one hash map",
           [&] { require(cache->has_block(keys[next++ % keys.size()]), "has_block"); },
           [&] { require(map.count(keys[other++ % keys.size()]) == 1, "map"); }, [] {}, 0, 1000});
}

}  // namespace

void bench_memory(const std::string& directory) {
  for (const uint32_t mib : {1, 4, 16}) bench_save(mib);
  for (const uint32_t mib : {1, 16, 64}) bench_hot_load(mib);
  bench_pending_load(directory);
  bench_has();
}

}  // namespace kvkeep::bench
