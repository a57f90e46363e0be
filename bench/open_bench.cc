// Opening a store that holds many blocks, beside listing it with a stat of each file.
#include <filesystem>
#include <fstream>

#include "disk/store_layout.h"
#include "harness.h"
#include "kvkeep/kvkeep.h"
#include "testing/block_builder.h"
#include "testing/test_images.h"

namespace kvkeep::bench {
namespace {

namespace fs = std::filesystem;

// Files as a cache writes them, without the time that writing them one by one would take.
void fill(const fs::path& directory, uint64_t count) {
  for (const char digit : std::string("0123456789abcdef"))
    fs::create_directories(directory / std::string(1, digit));
  for (uint64_t k = 0; k < count; ++k) {
    const testing::TestBlock block = testing::sized(k, 2048);
    const auto image = testing::encode(block);
    require((*image) != nullptr, "encode");
    const BytesView bytes = (*image)->bytes();
    std::ofstream(directory / block_path(block.hash), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
}

void list_and_stat(const fs::path& directory, uint64_t count) {
  uint64_t files = 0, bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    ++files;
    bytes += entry.file_size();
  }
  require(files >= count && bytes >= count * 2048, "listing");
}

void bench_count(const std::string& directory, uint64_t count) {
  const fs::path store = fs::path(directory) / ("open" + std::to_string(count));
  fill(store, count);
  const auto open = [&] {
    Options options;
    options.cache_dir = store;
    options.max_size_bytes = 64ull << 30;
    const auto cache = TieredBlockCache::open(options);
    require(cache.ok() && (*cache)->size() == count, "open");
  };
  list_and_stat(store, count);  // Both find the same things in the system's caches.
  measure("open, " + std::to_string(count) + " blocks", static_cast<double>(count), open,
          "list and stat each file", [&] { list_and_stat(store, count); });
  fs::remove_all(store);
}

}  // namespace

void bench_open(const std::string& directory, bool large) {
  bench_count(directory, 10'000);
  if (large) bench_count(directory, 100'000);
}

}  // namespace kvkeep::bench
