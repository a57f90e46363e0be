#include "kvkeep/block_hash.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "testing/proves.h"

namespace kvkeep {
namespace {

std::vector<std::byte> bytes_of(size_t n) { return std::vector<std::byte>(n, std::byte{0xab}); }

TEST(BlockHash, KeysOfOneTo119BytesRoundTrip) {
  testing::proves("PATH-02", "RUL-44");
  for (size_t n = 1; n <= BlockHash::kMaxBytes; ++n) {
    const auto hash = BlockHash::from_bytes(bytes_of(n));
    ASSERT_TRUE(hash.ok()) << n;
    EXPECT_EQ(hash->bytes().size(), n);
    EXPECT_EQ(*BlockHash::from_hex(hash->to_hex()), *hash);
  }
}

TEST(BlockHash, EmptyAndOverlongKeysAreRefused) {
  for (const size_t n : {size_t{0}, size_t{120}, size_t{4096}}) {
    const auto hash = BlockHash::from_bytes(bytes_of(n));
    ASSERT_FALSE(hash.ok()) << n;
    EXPECT_EQ(hash.status().code(), Code::kInvalidArgument);
    EXPECT_NE(hash.status().message().find("1 to 119 bytes"), std::string::npos);
  }
}

TEST(BlockHash, OnlyLowerCaseHexIsAccepted) {
  for (const char* text : {"", "a", "AB", "0x", "ab ", "zz", "ab\n1"}) {
    EXPECT_FALSE(BlockHash::from_hex(text).ok()) << text;
  }
}

TEST(BlockHash, OrderAndEqualityAreBytewise) {
  const BlockHash a = *BlockHash::from_hex("01");
  const BlockHash b = *BlockHash::from_hex("0100");
  const BlockHash c = *BlockHash::from_hex("ff");
  EXPECT_TRUE(a < b);
  EXPECT_TRUE(b < c);
  EXPECT_FALSE(a == b);
  EXPECT_EQ(a.hash_value(), BlockHash::from_hex("01")->hash_value());
}

TEST(BlockHash, ShortFormIsSixteenCharacters) {
  EXPECT_EQ(BlockHash::from_bytes(bytes_of(32))->short_hex(), "abababababababab");
  EXPECT_EQ(BlockHash::from_bytes(bytes_of(2))->short_hex(), "abab");
}

// Keys that differ in one byte, wherever it is, must not end in one bucket or one shard.
TEST(BlockHash, EveryByteOfAKeyCountsForItsPlaceInATable) {
  for (size_t size : {size_t{8}, size_t{32}, size_t{119}}) {
    for (size_t at = 0; at < size; ++at) {
      std::set<size_t> low, high;
      for (int value = 0; value < 256; ++value) {
        std::vector<std::byte> key(size, std::byte{'0'});
        key[at] = std::byte(value);
        const size_t hash = BlockHash::from_bytes(key)->hash_value();
        low.insert(hash % 1024);
        high.insert((hash >> 32) % 64);
      }
      EXPECT_GT(low.size(), 150u) << "byte " << at << " of " << size;
      EXPECT_GT(high.size(), 40u) << "byte " << at << " of " << size;
    }
  }
}

}  // namespace
}  // namespace kvkeep
