// Loads from disk, beside plain reads of the same files into the same kind of buffer.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#define XXH_STATIC_LINKING_ONLY  // For a state on the stack.
#include <xxhash.h>

#include "harness.h"
#include "io/buffer_pool.h"
#include "kvkeep/kvkeep.h"
#include "testing/block_builder.h"
#include "testing/block_compare.h"

namespace kvkeep::bench {
namespace {

using testing::TestBlock;

volatile uint64_t g_sink;  // Keeps the compiler from leaving the digest out.

long page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

// The file's pages leave the page cache, if they are clean.
void make_cold(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  require(fd >= 0, path);
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
}
void make_warm(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  require(fd >= 0, path);
  std::vector<char> buffer(1 << 20);
  while (::read(fd, buffer.data(), buffer.size()) > 0) {
  }
  ::close(fd);
}

// The least that a verified load has to do: the file's bytes, and a digest over them.
void read_and_digest(const std::string& path, PooledBuffer& into) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  size_t at = 0;
  for (ssize_t got = 1; got > 0; at += static_cast<size_t>(got))
    got = ::read(fd, into.data() + at, into.capacity() - at);
  ::close(fd);
  g_sink = XXH3_128bits(into.data(), at).low64;
}

struct Store {
  Store(const std::string& directory, uint32_t mib, uint64_t count) {
    Options options;
    options.cache_dir = directory;
    options.max_size_bytes = 4ull << 30;
    options.durability = Durability::kData;
    cache = *TieredBlockCache::open(options);
    for (uint64_t k = 0; k < count; ++k) {
      const TestBlock block = testing::mib(k, mib);
      require(cache->save_block(block.hash, block.input).ok(), "save");
      require(cache->flush().ok(), "flush");
      keys.push_back(block.hash);
      paths.push_back(cache->block_path(block.hash).string());
      const auto loaded = cache->load_block_with_info(block.hash);
      require(loaded.ok() && testing::difference(block.input, *loaded).empty(), "disk load");
    }
  }
  std::unique_ptr<TieredBlockCache> cache;
  std::vector<BlockHash> keys;
  std::vector<std::string> paths;
};

void bench_load(const std::string& directory, uint32_t mib) {
  Store store(directory + "/disk" + std::to_string(mib), mib, 8);
  const auto pool = BufferPool::create({.limit_bytes = 1ull << 30});
  PooledBuffer buffer = *pool->allocate((mib + 1ull) << 20);
  size_t ours = 0, theirs = 0;
  for (const bool cold : {false, true}) {
    const auto prepare = [&] {
      for (const std::string& path : store.paths) cold ? make_cold(path) : make_warm(path);
    };
    const long faults = page_faults();
    compare(
        {std::string("disk load, ") + (cold ? "cold, " : "warm, ") + std::to_string(mib) + " MiB",
         cold ? "buffered read + digest, cold" : "buffered read + digest, warm",
         [&] { require(store.cache->load_block(store.keys[ours++ % 8]).ok(), "load"); },
         [&] { read_and_digest(store.paths[theirs++ % 8], buffer); }, prepare, mib * 1048576.0});
    if (!cold) std::printf("  page faults meanwhile: %ld\n", page_faults() - faults);
  }
}

void bench_prompt(const std::string& directory) {
  Store store(directory + "/prompt", 1, 16);
  const auto prepare = [&] {
    for (const std::string& path : store.paths) make_cold(path);
  };
  const auto all = [&] {
    const auto blocks = store.cache->load_blocks(store.keys, BatchMode::kPrefix);
    require(blocks.size() == 16 && blocks.back().ok(), "load_blocks");
  };
  const auto one_by_one = [&] {
    prepare();
    for (const BlockHash& key : store.keys) require(store.cache->load_block(key).ok(), "load");
  };
  compare({"load_blocks, 16 of 1 MiB, cold", "load_block of each", all, one_by_one, prepare,
           16 * 1048576.0});
}

}  // namespace

void bench_disk(const std::string& directory) {
  for (const uint32_t mib : {1, 4, 16}) bench_load(directory, mib);
  bench_prompt(directory);
}

}  // namespace kvkeep::bench
