// A directory written by oMLX opens as it is, is served, and is left as it was. (codec's
// seed_cache_test compares every tensor with the manifest.)
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "kvkeep/kvkeep.h"
#include "testing/block_builder.h"
#include "testing/proves.h"
#include "testing/temp_dir.h"

namespace kvkeep {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

class SeedStoreTest : public ::testing::Test {
 protected:
  SeedStoreTest() {
    const fs::path source = fs::path(KVKEEP_TEST_DATA) / "seed-cache";
    fs::copy(source, dir_.path(),
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    manifest_ = nlohmann::json::parse(read(source / "manifest.json"));
  }
  Result<std::unique_ptr<TieredBlockCache>> open(const std::string& model) {
    Options options;
    options.cache_dir = dir_.path();
    options.max_size_bytes = 1ull << 30;
    options.model_name = model;
    return TieredBlockCache::open(options);
  }
  const testing::TempDir dir_;
  nlohmann::json manifest_;
};

TEST_F(SeedStoreTest, EveryBlockIsServedAndEveryFileLeftAsItWas) {
  testing::proves("RUL-16", "SCAN-01", "STATE-11", "DEF-41", "RUL-37");
  {
    auto cache = open("");
    ASSERT_TRUE(cache.ok()) << cache.status().to_string();
    for (const auto& row : manifest_) {
      const auto key = BlockHash::from_hex(row["key"].get<std::string>());
      const auto loaded = (*cache)->load_block_with_info(*key);
      ASSERT_TRUE(loaded.ok()) << row["name"] << ": " << loaded.status().to_string();
      EXPECT_EQ(loaded->info.token_count, row["token_count"].get<uint32_t>());
    }
    EXPECT_EQ((*cache)->stats().unverified_loads, manifest_.size());
    EXPECT_EQ((*cache)->stats().foreign_files, 1u);  // manifest.json
  }
  for (const auto& row : manifest_) {
    const std::string file = row["file"].get<std::string>();
    EXPECT_EQ(read(dir_.path() / file), read(fs::path(KVKEEP_TEST_DATA) / "seed-cache" / file))
        << file;
  }
}

TEST_F(SeedStoreTest, BlocksOfOtherModelsAreCountedButNotServed) {
  testing::proves("SCAN-02", "COMPAT-01");
  auto cache = open("org/plain");
  ASSERT_TRUE(cache.ok());
  uint64_t served = 0;
  for (const auto& row : manifest_) {
    const std::string model = row["model_name"].get<std::string>();
    const auto key = BlockHash::from_hex(row["key"].get<std::string>());
    const auto loaded = (*cache)->load_block_with_info(*key);
    served += loaded.ok() ? 1 : 0;
    EXPECT_EQ(loaded.ok(), model.empty() || model == "org/plain") << row["name"];
    if (!loaded.ok()) {
      EXPECT_EQ(loaded.status().miss_reason(), MissReason::kModel);
    }
  }
  EXPECT_GE(served, 3u);
  EXPECT_EQ((*cache)->stats().num_files, manifest_.size());
  EXPECT_EQ((*cache)->stats().incompatible_files, manifest_.size() - served);
}

}  // namespace
}  // namespace kvkeep
