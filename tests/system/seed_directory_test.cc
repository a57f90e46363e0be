// A large directory in the seed's layout: two format versions, several models and block sizes,
// files that nobody can read. It is opened for different models, and each block is served, counted,
// swept or evicted as its file says.
#include <gtest/gtest.h>

#include <map>

#include "base/bytes.h"
#include "codec/block_codec.h"
#include "disk/store_layout.h"
#include "hash/signature.h"
#include "testing/block_builder.h"
#include "testing/block_compare.h"
#include "testing/exact_buffer_pool.h"
#include "testing/proves.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using testing::key_of;
using testing::proves;
using testing::TestBlock;
using testing::TestStore;
using Types = std::vector<std::string>;

constexpr double kOldest = 1'700'000'000;

enum class Kind : uint8_t { kVersion3, kVersion2, kVersion1, kUnreadable };

struct SeedFile {
  TestBlock block;
  Kind kind = Kind::kVersion3;
  uint32_t block_size = 0;
  uint64_t bytes = 0;
};

// The header that the seed's version 2 had: legacy names, no layer types.
std::string legacy_file(const TestBlock& block, uint32_t block_size, const std::string& version) {
  const std::string header =
      R"({"layer_0_keys":{"dtype":"U8","shape":[512],"data_offsets":[0,512]},)"
      R"("layer_0_values":{"dtype":"U8","shape":[512],"data_offsets":[512,1024]},)"
      R"("__metadata__":{"omlx_cache_format_version":")" +
      version + R"(","block_hash":")" + block.hash.to_hex() +
      R"(","token_count":"64","num_layers":"1","model_name":")" + block.input.model_name +
      R"(","block_size":")" + std::to_string(block_size) +
      R"(","cache_signature":"","created_at":"0"}})";
  const auto& pair = std::get<NState>(block.input.layers[0]);
  std::string data;
  for (const Element& element : pair.elements) {
    const BytesView view = std::get<Tensor>(element.v).data.view;
    data.append(reinterpret_cast<const char*>(view.data()), view.size());
  }
  const auto file = testing::raw_file(header, std::as_bytes(std::span(data)));
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

class SeedDirectoryTest : public ::testing::Test {
 protected:
  SeedDirectoryTest() {
    store_.options.profile = Profile::kExtended;
    const char* const models[] = {"org/a", "org/b", ""};
    const char* const types[] = {"KVCache", "SizedArraysCache", "TurboQuantKVCache"};
    for (uint64_t k = 0; k < 360; ++k) {
      SeedFile file{{std::to_string(k), key_of(k), {}, {}, false}};
      file.block.input.layers = {make_pair_state(testing::payload(DType::kU8, {512}, k),
                                                 testing::payload(DType::kU8, {512}, k, 512))};
      file.block.input.token_count = 64;
      file.block.input.model_name = models[k % 3];
      file.block_size = k / 3 % 2 == 0 ? 64 : 256;
      file.kind = static_cast<Kind>(k / 6 % 10 < 7 ? 0 : k / 6 % 10 - 6);
      if (file.kind == Kind::kVersion3) {
        const std::string type = types[k / 60 % 3];
        file.block.input.layer_types = {{type}};
        MetaState meta = {MetaValue{int64_t{64}}};
        if (type == "TurboQuantKVCache") {
          meta = {MetaValue{int64_t{64}}, MetaValue{k % 4 < 2 ? 4.0 : 6.0}, MetaValue{int64_t{0}}};
        }
        file.block.input.meta_states = {{meta}};
      }
      write(file, k);
      files_.push_back(std::move(file));
    }
  }

  void write(SeedFile& file, uint64_t k) {
    std::string bytes = "not a block";
    if (file.kind == Kind::kVersion3) {
      EncodeContext context;
      context.created_at = kOldest;
      context.block_size = file.block_size;
      context.profile = Profile::kSeedExact;
      const auto image = encode_block(file.block.hash, file.block.input, context, *store_.pool);
      ASSERT_TRUE(image.ok()) << image.status().to_string();
      const BytesView view = (*image)->bytes();
      bytes.assign(reinterpret_cast<const char*>(view.data()), view.size());
    } else if (file.kind != Kind::kUnreadable) {
      bytes = legacy_file(file.block, file.block_size, file.kind == Kind::kVersion2 ? "2" : "1");
    }
    file.bytes = bytes.size();
    store_.disk->write_all(store_.path(file.block), bytes);
    ASSERT_TRUE(
        store_.disk->set_mtime(store_.path(file.block), kOldest + static_cast<double>(k)).ok());
  }

  static bool is_readable(const SeedFile& file) { return file.kind <= Kind::kVersion2; }
  static bool has_types(const SeedFile& file, const std::string& type) {
    return file.block.input.layer_types == Types{type};
  }
  uint64_t total_bytes() const {
    uint64_t bytes = 0;
    for (const SeedFile& file : files_) bytes += file.bytes;
    return bytes;
  }
  // How many files are served, after a look at each that it is one of those that `should` be, and
  // gives its bytes.
  template <typename Should>
  uint64_t served(const Should& should) {
    uint64_t count = 0;
    for (const SeedFile& file : files_) {
      EXPECT_EQ(store_.cache->has_block(file.block.hash), should(file)) << file.block.name;
      const std::string outcome = load(file);
      EXPECT_EQ(outcome == "disk", should(file)) << file.block.name << ": " << outcome;
      ++outcomes_[outcome];
      count += outcome == "disk" ? 1 : 0;
    }
    return count;
  }
  std::string load(const SeedFile& file) {
    const auto loaded = store_.cache->load_block_with_info(file.block.hash);
    if (!loaded.ok()) return std::string(name_of(*loaded.status().miss_reason()));
    const auto& pair = std::get<NState>(loaded->layers.at(0));
    const uint64_t k = std::stoull(file.block.name);
    const bool right = testing::is_payload(std::get<Tensor>(pair.elements.at(0).v), k) &&
                       testing::is_payload(std::get<Tensor>(pair.elements.at(1).v), k, 512);
    return right && loaded->info.block_size == file.block_size ? "disk" : "WRONG";
  }

  TestStore store_;
  std::vector<SeedFile> files_;
  std::map<std::string, uint64_t> outcomes_;
};

TEST_F(SeedDirectoryTest, WithoutAnExpectationEveryReadableFileIsServed) {
  proves("SCAN-01", "COMPAT-05", "STATE-11", "SCAN-10");
  store_.open();
  const uint64_t count = served(is_readable);
  EXPECT_EQ(count, 288u);
  EXPECT_EQ(store_.cache->stats().num_files, files_.size());
  EXPECT_EQ(store_.cache->stats().incompatible_files, files_.size() - count);
  EXPECT_EQ(store_.cache->stats().file_bytes, total_bytes());
  EXPECT_EQ(outcomes_["version"], 36u);
  EXPECT_EQ(outcomes_["unreadable"], 36u);
}

TEST_F(SeedDirectoryTest, AModelAndABlockSizeSelectTheirFiles) {
  proves("SCAN-02", "SCAN-03", "COMPAT-01", "COMPAT-03", "COMPAT-06");
  store_.options.model_name = "org/a";
  store_.options.block_size = 64;
  store_.open();
  const auto is_ours = [](const SeedFile& file) {
    const std::string& model = file.block.input.model_name;
    return is_readable(file) && file.block_size == 64 && (model.empty() || model == "org/a");
  };
  EXPECT_GT(served(is_ours), 50u);
  EXPECT_GT(outcomes_["model"], 50u);
  EXPECT_GT(outcomes_["block_size"], 50u);
  EXPECT_EQ(store_.cache->stats().num_files, files_.size());
  EXPECT_EQ(store_.cache->stats().file_bytes, total_bytes());
}

TEST_F(SeedDirectoryTest, TypesGivenAtOpenSelectTheirFiles) {
  proves("COMPAT-04", "COMPAT-08");
  store_.options.model_name = "org/a";
  store_.options.layer_types = {{"ArraysCache"}};
  store_.open();
  EXPECT_GT(served([](const SeedFile& file) {
              return is_readable(file) && file.block.input.model_name == "org/a" &&
                     has_types(file, "SizedArraysCache");
            }),
            20u);
  EXPECT_EQ(store_.cache->stats().num_files, files_.size());
}

TEST_F(SeedDirectoryTest, ASweepTakesWhatIsOfTheModelAndOfOtherTypes) {
  proves("SWEEP-01", "SWEEP-02", "SWEEP-06", "SWEEP-07", "SWEEP-13");
  const auto before = [](const SeedFile& file) {
    return is_readable(file) && file.block.input.model_name != "org/b";
  };
  const auto stays = [&](const SeedFile& file, const char* type) {
    return before(file) && (file.block.input.model_name.empty() || file.kind == Kind::kVersion2 ||
                            has_types(file, type));
  };
  store_.options.model_name = "org/a";
  store_.open();
  const uint64_t all = served(before);
  EXPECT_TRUE(store_.cache->set_expected_layer_types(Types{"ArraysCache"}, {}));
  const uint64_t dropped = store_.cache->sweep_stale_layouts();
  EXPECT_GT(dropped, 20u);
  EXPECT_EQ(served([&](const SeedFile& file) { return stays(file, "SizedArraysCache"); }),
            all - dropped);
  // Another layout: what fits it returns before the sweep takes what no longer fits.
  EXPECT_TRUE(store_.cache->set_expected_layer_types(Types{"KVCache"}, {}));
  served([&](const SeedFile& file) {
    return stays(file, "SizedArraysCache") || stays(file, "KVCache");
  });
  EXPECT_GT(store_.cache->sweep_stale_layouts(), 20u);
  served([&](const SeedFile& file) { return stays(file, "KVCache"); });
  EXPECT_EQ(store_.cache->stats().num_files, files_.size());
  EXPECT_EQ(store_.cache->stats().file_bytes, total_bytes());
}

TEST_F(SeedDirectoryTest, ADepthSelectsItsFiles) {
  proves("TQ-02", "TQ-04");
  store_.options.model_name = "org/a";
  store_.open();
  EXPECT_TRUE(store_.cache->set_expected_layer_types(Types{"TurboQuantKVCache"}, 6.0));
  EXPECT_GT(store_.cache->sweep_stale_layouts(), 50u);
  uint64_t of_depth_6 = 0;
  for (const SeedFile& file : files_) {
    if (file.block.input.model_name != "org/a") continue;
    const bool fits = has_types(file, "TurboQuantKVCache") && std::stoull(file.block.name) % 4 >= 2;
    EXPECT_EQ(store_.cache->has_block(file.block.hash), fits) << file.block.name;
    of_depth_6 += fits;
  }
  EXPECT_GT(of_depth_6, 5u);
}

TEST_F(SeedDirectoryTest, TheOldestFilesLeaveWhateverTheyAre) {
  proves("SCAN-08", "EVICT-03", "EVICT-05");
  store_.options.model_name = "org/a";
  store_.options.block_size = 64;
  store_.open();
  store_.close();
  uint64_t youngest = 0;
  for (size_t k = files_.size() - 100; k < files_.size(); ++k) youngest += files_[k].bytes;
  store_.options.max_size_bytes = store_.own_bytes - total_bytes() + youngest + 1;
  store_.open();
  EXPECT_EQ(store_.cache->stats().num_files, 100u);
  EXPECT_EQ(store_.cache->stats().evictions, files_.size() - 100);
  for (size_t k = 0; k < files_.size(); ++k) {
    EXPECT_EQ(store_.disk->read_all(store_.path(files_[k].block)).has_value(),
              k >= files_.size() - 100);
  }
}

TEST_F(SeedDirectoryTest, ASaveReplacesTheFileOfAnotherModelUnderItsKey) {
  proves("SAVE-22");
  store_.options.model_name = "org/c";
  store_.options.block_size = 64;
  store_.open();
  TestBlock block = files_[1].block;
  block.input.model_name = "org/c";
  block.input.layer_types = {{"KVCache"}};
  block.input.meta_states.reset();
  EXPECT_EQ(load(files_[1]), "model");
  const uint64_t files = store_.cache->stats().num_files;
  store_.save_and_write(block);
  EXPECT_EQ(store_.cache->stats().num_files, files);
  EXPECT_EQ(store_.load(block), "disk");
  EXPECT_EQ(store_.cache->expected_layout().layer_types, Types{"KVCache"});
}

}  // namespace
}  // namespace kvkeep
