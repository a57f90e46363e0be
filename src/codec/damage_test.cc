// Damage to files with a digest: nothing of it is ever served.

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "codec/block_codec.h"
#include "codec/digest.h"
#include "testing/proves.h"
#include "testing/test_images.h"

namespace kvkeep {
namespace {

using testing::TestBlock;
using Bytes = std::vector<std::byte>;

Bytes bytes_of(const Image& image) { return {image.bytes().begin(), image.bytes().end()}; }

// Refused as damaged, and with more room behind the file also.
::testing::AssertionResult refused(BytesView file) {
  const auto image = testing::decode(file);
  if (image.ok()) return ::testing::AssertionFailure() << "served";
  if (image.status().code() != Code::kDataLoss ||
      image.status().miss_reason() != MissReason::kDamaged) {
    return ::testing::AssertionFailure() << image.status().to_string();
  }
  return ::testing::AssertionSuccess();
}

TEST(Damage, EverySingleBitFlipIsRefused) {
  testing::proves("RUL-15", "DEF-38", "ERR-05");
  for (const TestBlock& block : testing::all_kinds()) {
    Bytes file = bytes_of(**testing::encode(block));
    for (size_t bit = 0; bit < file.size() * 8; ++bit) {
      const auto mask = static_cast<std::byte>(1 << bit % 8);
      file[bit / 8] ^= mask;
      ASSERT_TRUE(refused(file)) << block.name << ": bit " << bit % 8 << " of byte " << bit / 8;
      file[bit / 8] ^= mask;
    }
  }
}

TEST(Damage, EveryTruncationIsRefused) {
  testing::proves("STATE-12", "SCAN-10");
  for (const TestBlock& block : testing::all_kinds()) {
    const Bytes file = bytes_of(**testing::encode(block));
    for (size_t size = 0; size < file.size(); ++size) {
      ASSERT_TRUE(refused(BytesView(file).first(size))) << block.name << ": " << size << " bytes";
    }
    Bytes longer = file;
    longer.push_back(std::byte{0});
    EXPECT_TRUE(refused(longer)) << block.name;
  }
}

TEST(Damage, EveryTruncationOfASeedFileIsRefused) {
  testing::proves("STATE-12");
  for (const TestBlock& block : testing::all_kinds()) {
    if (block.extended_only) continue;
    const Bytes file = bytes_of(**testing::encode(block, Profile::kSeedExact));
    // A block without tensors ends with its header, whose padding may go.
    const bool without_data = 8 + load_le<uint64_t>(file.data()) == file.size();
    if (without_data) continue;
    for (size_t size = 0; size < file.size(); ++size) {
      ASSERT_TRUE(refused(BytesView(file).first(size))) << block.name << ": " << size << " bytes";
    }
  }
}

TEST(Damage, ZeroedRangesAreRefused) {
  const Bytes whole = bytes_of(**testing::encode(testing::blk(1)));
  for (size_t begin = 0; begin < whole.size(); begin += 4096) {
    Bytes file = whole;
    const size_t end = std::min(begin + 4096, file.size());
    std::fill(file.begin() + begin, file.begin() + end, std::byte{0});
    EXPECT_TRUE(refused(file)) << begin;
  }
}

TEST(Damage, AnotherKeyIsRefused) {
  testing::proves("LOAD-16", "DEF-39");
  DecodeContext context;
  context.expected = testing::key_of(2);
  const Status status =
      testing::decode((*testing::encode(testing::blk(1)))->bytes(), context).status();
  EXPECT_EQ(status.miss_reason(), MissReason::kDamaged);
}

// The file's header text with a change, and a digest that is right again where one is given.
Bytes rewritten(const Bytes& file, std::string_view from, std::string_view to) {
  std::string text(as_text(file));
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  store_le<uint64_t>(text.data(), load_le<uint64_t>(text.data()) + to.size() - from.size());
  Bytes out(as_byte_span(text).begin(), as_byte_span(text).end());
  const std::string_view key = "\"kvkeep_xxh3\":\"";
  const size_t digits = text.find(key);
  if (digits != std::string::npos) {
    const std::string right = *digest_of_file(out, digits + key.size());
    std::memcpy(out.data() + digits + key.size(), right.data(), right.size());
  }
  return out;
}

TEST(Damage, OneExtensionKeyDemandsAllOfThem) {
  testing::proves("RUL-15");
  TestBlock block = testing::blk(1);
  block.identity = std::string(64, '5');
  block.input.parent = testing::key_of(2);
  const Bytes file = bytes_of(**testing::encode(block));
  EXPECT_TRUE(testing::decode(rewritten(file, "\"m\"", "\"n\"")).ok()) << "a right digest counts";
  const std::string profile = R"("kvkeep_profile":"1",)";
  EXPECT_TRUE(refused(rewritten(file, profile, "")));
  EXPECT_TRUE(refused(rewritten(file, profile, R"("kvkeep_profile":"2",)")));
  EXPECT_TRUE(refused(rewritten(file, profile, R"("kvkeep_profilf":"1",)")));
  EXPECT_TRUE(refused(rewritten(file, "\"kvkeep_xxh3\"", "\"kvkeep_xxh2\"")));
  EXPECT_TRUE(refused(rewritten(file, "\"kvkeep_xxh3\"", "\"lvkeep_xxh3\"")));
  EXPECT_TRUE(refused(rewritten(file, "kvkeep_identity\":\"5", "kvkeep_identity\":\"G")));
  EXPECT_TRUE(refused(rewritten(file, "kvkeep_parent\":\"", "kvkeep_parent\":\"0")));

  const Bytes seed = bytes_of(**testing::encode(testing::blk(1), Profile::kSeedExact));
  const std::string_view count = "\"layer_0_state_count\":\"2\"";
  for (const std::string_view key : {"kvkeep_profile", "kvkeep_new", "kvkeep_", "kvkeep_tokens"}) {
    const std::string more = std::string(count) + ",\"" + std::string(key) + "\":\"1\"";
    EXPECT_TRUE(refused(rewritten(seed, count, more))) << key;
  }
  const std::string foreign = std::string(count) + R"(,"other_key":"1")";
  EXPECT_TRUE(testing::decode(rewritten(seed, count, foreign)).ok());
}

TEST(Damage, AFutureVersionIsBelievedOnlyWithARightDigest) {
  const Bytes file = bytes_of(**testing::encode(testing::blk(1)));
  const Bytes future = rewritten(file, "format_version\":\"3\"", "format_version\":\"4\"");
  const Status status = testing::decode(future).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_EQ(status.miss_reason(), MissReason::kVersion);
  Bytes rotten = future;
  rotten.back() ^= std::byte{1};
  EXPECT_TRUE(refused(rotten));
}

TEST(Damage, AMissingPartSpoilsTheWholeBlock) {
  testing::proves("STATE-12", "ERR-05", "DEF-38");
  for (const TestBlock& block : testing::all_kinds()) {
    if (block.name != "cache list beside a pair") continue;
    const Bytes file = bytes_of(**testing::encode(block));
    EXPECT_TRUE(
        refused(rewritten(file, "\"layer_0_sub_1_state_0\":{", "\"layer_0_sub_9_state_0\":{")));
    EXPECT_TRUE(refused(rewritten(file, "layer_0_sub_count\":\"2", "layer_0_sub_count\":\"3")));
    EXPECT_TRUE(refused(rewritten(file, "sub_0_state_count\":\"2", "sub_0_state_count\":\"3")));
    EXPECT_TRUE(refused(rewritten(file, "sub_0_state_count\":\"2", "sub_0_state_count\":\"-2")));
    EXPECT_TRUE(refused(rewritten(file, "num_layers\":\"2", "num_layers\":\"3")));
    EXPECT_TRUE(refused(rewritten(file, "num_layers\":\"2", "num_layers\":\"4294967295")));
  }
}

}  // namespace
}  // namespace kvkeep
