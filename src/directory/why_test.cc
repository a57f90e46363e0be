#include "directory/why.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "disk/store_layout.h"
#include "testing/seed_block.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using testing::blk;
using testing::Op;

class WhyTest : public ::testing::Test {
 protected:
  WhyTest() {
    store_.options.model_name = "m";
    store_.options.identity = {{"build", "b7"}};
    store_.open();
    store_.save_and_write(block_);
  }
  BlockAnswer ask(const ExpectedBlocks& expected = {}) { return ask(store_.disk, expected); }
  BlockAnswer ask(const std::shared_ptr<FileSystem>& files, const ExpectedBlocks& expected = {}) {
    return BlockJudge(*files, "/store", expected).judge(block_.hash);
  }
  // "ok", or the reason by name.
  std::string word(const ExpectedBlocks& expected = {}) { return word_of(ask(expected)); }
  static std::string word_of(const BlockAnswer& answer) {
    return nlohmann::json::parse(to_json(answer))["state"];
  }
  void flip(size_t byte) {
    std::string bytes = *store_.disk->read_all(store_.path(block_));
    bytes[byte] = static_cast<char>(bytes[byte] ^ 4);
    store_.disk->write_all(store_.path(block_), bytes);
  }

  testing::TestStore store_;
  const testing::TestBlock block_ = blk(1);
};

TEST_F(WhyTest, AWholeBlockIsAHit) {
  const BlockAnswer answer = ask();
  EXPECT_EQ(answer.reason, std::nullopt);
  EXPECT_EQ(answer.path, "/store/" + store_.path(block_));
  EXPECT_EQ(answer.file_size, store_.file_bytes(block_));
  EXPECT_EQ(answer.token_count, 64u);
  EXPECT_NE(answer.text.find("64 tokens"), std::string::npos) << answer.text;
  const auto json = nlohmann::json::parse(to_json(answer));
  EXPECT_EQ(json["hash"], block_.hash.to_hex());
  EXPECT_EQ(json["token_count"], 64);
  EXPECT_FALSE(json.contains("first_token"));
  EXPECT_FALSE(json.contains("differences"));
}

TEST_F(WhyTest, WhatWasNeverStoredIsAbsent) {
  ASSERT_TRUE(store_.disk->unlink(store_.path(block_)).ok());
  EXPECT_EQ(word(), "absent");
}

TEST_F(WhyTest, OneChangedTensorByteIsDamage) {
  flip(store_.file_bytes(block_) - 1);
  EXPECT_EQ(word(), "damaged");
  EXPECT_NE(ask().text.find("digest"), std::string::npos);
}

TEST_F(WhyTest, DamageThatACacheFoundLiesInTheQuarantine) {
  flip(store_.file_bytes(block_) - 1);
  EXPECT_EQ(store_.load(block_), "damaged");
  ASSERT_FALSE(store_.disk->read_all(store_.path(block_)));
  const BlockAnswer answer = ask();
  EXPECT_EQ(answer.reason, MissReason::kDamaged);
  EXPECT_NE(answer.text.find("quarantine"), std::string::npos) << answer.text;
  const std::string hex = block_.hash.to_hex();
  EXPECT_EQ(*find_quarantined_keys(*store_.disk, hex.substr(0, 8)),
            std::vector<BlockHash>{block_.hash});
  EXPECT_TRUE(find_quarantined_keys(*store_.disk, "0" + hex)->empty());
}

TEST_F(WhyTest, AHeaderThatMakesNoSenseIsUnreadableAsAtOpen) {
  store_.disk->write_all(store_.path(block_), "nonsense");
  EXPECT_EQ(word(), "unreadable");
  store_.restart();
  EXPECT_EQ(store_.load(block_), "unreadable") << "the reasons are those that a cache counts";
}

TEST_F(WhyTest, AFileUnderTheNameOfAnotherBlockIsDamage) {
  store_.save_and_write(blk(2));
  store_.disk->write_all(store_.path(block_), *store_.disk->read_all(store_.path(blk(2))));
  EXPECT_EQ(word(), "damaged");
}

TEST_F(WhyTest, AnotherFormatVersionIsTold) {
  std::string bytes = *store_.disk->read_all(store_.path(block_));
  const std::string version = "\"omlx_cache_format_version\":\"3\"";
  ASSERT_NE(bytes.find(version), std::string::npos);
  bytes.replace(bytes.find(version) + version.size() - 2, 1, "9");
  store_.disk->write_all(store_.path(block_), bytes);
  EXPECT_EQ(word(), "version");
}

TEST_F(WhyTest, AReadThatFailsIsUnreadable) {
  const auto flaky = std::make_shared<testing::FaultyFileSystem>(store_.disk);
  flaky->plan().fail_every(Op::kRead, store_.path(block_), EIO);
  EXPECT_EQ(word_of(ask(flaky)), "unreadable");
}

TEST_F(WhyTest, WhatTheCacheExpectsIsCompared) {
  ExpectedBlocks expected;
  expected.identity = store_.options.identity;
  expected.layout.model_name = "m";
  EXPECT_EQ(word(expected), "ok");
  expected.layout.model_name = "other";
  EXPECT_EQ(word(expected), "model");
  EXPECT_NE(ask(expected).text.find("'m' is stored; asked for 'other'"), std::string::npos);
  expected.layout.model_name = "";
  expected.layout.num_layers = 7;
  EXPECT_EQ(word(expected), "layout");
  expected.layout.num_layers = 0;
  expected.layout.block_size = 32;
  EXPECT_EQ(word(expected), "block_size");
  EXPECT_NE(ask(expected).text.find("64 is stored; asked for 32"), std::string::npos);
}

TEST_F(WhyTest, AnotherIdentityIsToldByTheFieldThatDiffers) {
  ExpectedBlocks expected;
  expected.identity = Namespace{{"build", "b8"}};
  const BlockAnswer answer = ask(expected);
  EXPECT_EQ(answer.reason, MissReason::kIdentity);
  EXPECT_NE(answer.text.find("stored for build 'b7'; asked for build 'b8'"), std::string::npos)
      << answer.text;
  ASSERT_EQ(answer.differences.size(), 1u);
  EXPECT_EQ(answer.differences[0].name, "build");
  const auto json = nlohmann::json::parse(to_json(answer));
  EXPECT_EQ(json["differences"][0]["stored"], "b7");
  ASSERT_TRUE(store_.disk->unlink(kNamespacesFile).ok());
  EXPECT_NE(ask(expected).text.find("is not known here"), std::string::npos);
  expected.identity.emplace();
  EXPECT_EQ(word(expected), "identity") << "a cache without one serves only files without";
}

TEST_F(WhyTest, NothingIsWritten) {
  flip(store_.file_bytes(block_) - 1);
  const auto watched = std::make_shared<testing::FaultyFileSystem>(store_.disk);
  EXPECT_EQ(word_of(ask(watched)), "damaged");
  EXPECT_TRUE(watched->changes().empty());
  EXPECT_EQ(watched->count(Op::kTryLock), 0u);
}

TEST_F(WhyTest, FilesOfTheSeedAreJudgedToo) {
  store_.disk->write_all(block_path(testing::seed_key()), testing::seed_bytes());
  BlockJudge judge(*store_.disk, "/store", {});
  EXPECT_EQ(judge.judge(testing::seed_key()).reason, std::nullopt);
}

}  // namespace
}  // namespace kvkeep
