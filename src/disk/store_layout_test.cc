#include "disk/store_layout.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "testing/proves.h"

namespace kvkeep {
namespace {

constexpr std::string_view kNonce = "0123456789abcdef";

BlockHash hash_of(const std::string& hex) { return *BlockHash::from_hex(hex); }

std::string repeated(std::string_view text, size_t n) {
  std::string out;
  for (size_t i = 0; i < n; ++i) out += text;
  return out;
}

NameKind kind_of(std::string_view dir, std::string_view name) { return classify(dir, name).kind; }

TEST(StoreLayout, BlockLivesInTheSubdirectoryOfItsFirstHexCharacter) {
  testing::proves("PATH-01");
  EXPECT_EQ(block_path(hash_of("abc1")), "a/abc1.safetensors");
  EXPECT_EQ(block_dir(hash_of("abc1")), "a");
  EXPECT_EQ(block_path(hash_of("00")), "0/00.safetensors");
  EXPECT_EQ(block_path(hash_of("ff00")), "f/ff00.safetensors");
}

TEST(StoreLayout, PathsOfEveryKeyLengthAreClassifiedAsThatBlock) {
  for (size_t n = 1; n <= BlockHash::kMaxBytes; ++n) {
    for (const char* byte : {"07", "9e", "f0"}) {
      const BlockHash hash = hash_of(repeated(byte, n));
      const std::string path = block_path(hash);
      const StoreName name = classify(path.substr(0, 1), path.substr(2));
      ASSERT_EQ(name.kind, NameKind::kBlock) << path;
      EXPECT_EQ(*name.hash, hash);
    }
  }
}

TEST(StoreLayout, NoNameIsLongerThanFileSystemsAllow) {
  constexpr size_t kNameMax = 255;
  const BlockHash longest = hash_of(repeated("ab", BlockHash::kMaxBytes));
  EXPECT_LE(block_path(longest).size() - 2, kNameMax);
  EXPECT_LE(temp_path(longest, kNonce, UINT64_MAX).size() - 2, kNameMax);
  EXPECT_LE(quarantine_path(longest, 9999).size() - kQuarantineDir.size() - 1, kNameMax);
}

TEST(StoreLayout, TemporaryNamesAreOursAndNameTheirProcess) {
  const std::string path = temp_path(hash_of("c0de"), kNonce, 7);
  EXPECT_EQ(path, "c/.kvkeep-0123456789abcdef-7.tmp");
  for (const uint64_t sequence : {uint64_t{0}, uint64_t{10}, UINT64_MAX}) {
    const StoreName name = classify("c", temp_path(hash_of("c0de"), kNonce, sequence).substr(2));
    EXPECT_EQ(name.kind, NameKind::kTemp);
    EXPECT_EQ(name.nonce, kNonce);
    EXPECT_FALSE(name.hash);
  }
}

TEST(StoreLayout, TemporaryNamesOfOmlxAreNeverBlocks) {
  testing::proves("SCAN-11", "DEF-12");
  EXPECT_EQ(kind_of("a", "abc1_tmp.safetensors"), NameKind::kSeedTemp);
  EXPECT_EQ(kind_of("a", "abc_tmp.safetensors"), NameKind::kSeedTemp);
  EXPECT_EQ(kind_of("b", "abc1_tmp.safetensors"), NameKind::kForeign);
  EXPECT_EQ(kind_of("a", "_tmp.safetensors"), NameKind::kForeign);
  EXPECT_EQ(kind_of("a", "abc1_tmp_tmp.safetensors"), NameKind::kForeign);
  EXPECT_EQ(kind_of("a", "aBc1_tmp.safetensors"), NameKind::kForeign);
}

TEST(StoreLayout, EverythingElseIsForeign) {
  testing::proves("SCAN-10", "DEF-70");
  const std::vector<std::string> names = {"",
                                          ".",
                                          "..",
                                          "a",
                                          "README",
                                          ".safetensors",
                                          "a.safetensors",
                                          "abc.safetensors",
                                          "AB.safetensors",
                                          "aB.safetensors",
                                          "ab.safetensors.bak",
                                          "ab.SAFETENSORS",
                                          "ab.safetensor",
                                          " ab.safetensors",
                                          "ab .safetensors",
                                          "ab\n.safetensors",
                                          "a/ab.safetensors",
                                          "../ab.safetensors",
                                          "ab/../ab.safetensors",
                                          "ax.safetensors",
                                          "ab.safetensors/",
                                          "ab..safetensors",
                                          "\xc3\xa4"
                                          "b.safetensors",
                                          "0xab.safetensors",
                                          "ab-1.safetensors",
                                          std::string("ab\0.safetensors", 15),
                                          "bb.safetensors",
                                          repeated("ab", BlockHash::kMaxBytes + 1) + ".safetensors",
                                          ".kvkeep-0123456789abcdef-.tmp",
                                          ".kvkeep-0123456789abcdef-x.tmp",
                                          ".kvkeep-0123456789abcdef-7",
                                          ".kvkeep-0123456789ABCDEF-7.tmp",
                                          ".kvkeep-0123456789abcde-7.tmp",
                                          ".kvkeep-0123456789abcdef-07.tmp",
                                          ".kvkeep-0123456789abcdef-+7.tmp",
                                          ".kvkeep-0123456789abcdef--7.tmp",
                                          ".kvkeep-0123456789abcdef-99999999999999999999999.tmp",
                                          ".kvkeep-0123456789abcdef-7.tmp.safetensors",
                                          ".kvkeep-.tmp",
                                          ".kvkeep-",
                                          ".tmp",
                                          "kvkeep-0123456789abcdef-7.tmp"};
  for (const std::string& name : names) EXPECT_EQ(kind_of("a", name), NameKind::kForeign) << name;
}

TEST(StoreLayout, OnlySingleLowerCaseHexCharactersAreSubdirectories) {
  for (const char* dir : {"", "g", "A", "ab", ".", "/", "a/", ".kvkeep"}) {
    EXPECT_FALSE(is_subdir(dir)) << dir;
    EXPECT_EQ(kind_of(dir, "ab.safetensors"), NameKind::kForeign) << dir;
    EXPECT_EQ(kind_of(dir, ".kvkeep-0123456789abcdef-7.tmp"), NameKind::kForeign) << dir;
  }
  std::set<std::string_view> dirs;
  for (int byte = 0; byte < 256; ++byte) {
    const std::byte b{static_cast<uint8_t>(byte)};
    dirs.insert(block_dir(*BlockHash::from_bytes({&b, 1})));
  }
  EXPECT_EQ(dirs.size(), kSubdirs.size());
  for (const std::string_view dir : dirs) EXPECT_TRUE(is_subdir(dir));
}

TEST(StoreLayout, OwnerNamesCarryTheirNonce) {
  EXPECT_EQ(owner_path(kNonce), ".kvkeep/owner-0123456789abcdef");
  EXPECT_EQ(owner_nonce("owner-0123456789abcdef"), kNonce);
  EXPECT_TRUE(is_owner_temp("owner-0123456789abcdef.tmp"));
  EXPECT_FALSE(is_owner_temp("owner-0123456789abcdef"));
  for (const char* name : {"", "owner-", "owner-0123", "owner-0123456789abcdeF",
                           "owner-0123456789abcdef.tmp", "0123456789abcdef", "open.lock"}) {
    EXPECT_FALSE(owner_nonce(name)) << name;
  }
}

TEST(StoreLayout, QuarantineNamesCarryTheirNumber) {
  const std::string path = quarantine_path(hash_of("beef"), 12);
  EXPECT_EQ(path, ".kvkeep/quarantine/beef-12.safetensors");
  EXPECT_EQ(quarantine_number("beef-12.safetensors"), 12u);
  for (const char* name :
       {"beef.safetensors", "beef-.safetensors", "-1.safetensors", "bee-1.safetensors", "beef-1",
        "beef-01.safetensors", "beef-1-2.safetensors", "BEEF-1.safetensors",
        "beef-9999999999999999.safetensors"}) {
    EXPECT_FALSE(quarantine_number(name)) << name;
  }
}

}  // namespace
}  // namespace kvkeep
