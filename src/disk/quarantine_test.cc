#include "disk/quarantine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "disk/store_layout.h"
#include "testing/mem_file_system.h"
#include "testing/proves.h"

namespace kvkeep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class QuarantineTest : public ::testing::Test {
 protected:
  QuarantineTest() { EXPECT_TRUE(files_.create_dirs(kServiceDir).ok()); }

  std::unique_ptr<Quarantine> open(uint64_t max_bytes) {
    auto quarantine = Quarantine::open(files_, max_bytes);
    EXPECT_TRUE(quarantine.ok()) << quarantine.status().to_string();
    return *std::move(quarantine);
  }

  BlockHash damaged_block(const std::string& hex, size_t bytes) {
    const BlockHash hash = *BlockHash::from_hex(hex);
    files_.write_all(block_path(hash), std::string(bytes, 'd'));
    return hash;
  }

  QuarantineReport take(Quarantine& quarantine, const std::string& hex, size_t bytes) {
    const auto report = quarantine.take(damaged_block(hex, bytes), bytes);
    EXPECT_TRUE(report.ok()) << report.status().to_string();
    return report.ok() ? *report : QuarantineReport();
  }

  // Names in the quarantine, sorted.
  std::vector<std::string> kept() {
    std::vector<std::string> names;
    (void)files_.list_dir(kQuarantineDir, [&](const DirEntry& e) { names.push_back(e.name); });
    std::sort(names.begin(), names.end());
    return names;
  }

  testing::MemFileSystem files_;
};

TEST_F(QuarantineTest, DamagedFileIsMovedAside) {
  testing::proves("RUL-14", "RUL-06");
  const auto quarantine = open(100);
  const QuarantineReport report = take(*quarantine, "ab", 40);
  EXPECT_EQ(report.added_bytes, 40u);
  EXPECT_EQ(report.removed_bytes, 0u);
  EXPECT_THAT(files_.paths(), ElementsAre(".kvkeep/quarantine/ab-1.safetensors"));
  EXPECT_EQ(quarantine->bytes(), 40u);
}

TEST_F(QuarantineTest, OldestLeaveFirst) {
  testing::proves("RUL-06");
  const auto quarantine = open(100);
  take(*quarantine, "aa", 40);
  take(*quarantine, "bb", 40);
  const QuarantineReport report = take(*quarantine, "cc", 50);
  EXPECT_EQ(report.added_bytes, 50u);
  EXPECT_EQ(report.removed_bytes, 40u);
  EXPECT_THAT(kept(), ElementsAre("bb-2.safetensors", "cc-3.safetensors"));
}

TEST_F(QuarantineTest, OneBlockMayComeTwice) {
  const auto quarantine = open(100);
  take(*quarantine, "aa", 10);
  take(*quarantine, "aa", 20);
  EXPECT_THAT(kept(), ElementsAre("aa-1.safetensors", "aa-2.safetensors"));
  EXPECT_EQ(quarantine->bytes(), 30u);
}

TEST_F(QuarantineTest, WhatDoesNotFitAloneIsDeleted) {
  testing::proves("RUL-06");
  const auto quarantine = open(100);
  take(*quarantine, "aa", 40);
  const QuarantineReport report = take(*quarantine, "bb", 101);
  EXPECT_EQ(report.added_bytes, 0u);
  EXPECT_EQ(report.removed_bytes, 0u);
  EXPECT_THAT(files_.paths(), ElementsAre(".kvkeep/quarantine/aa-1.safetensors"));
}

TEST_F(QuarantineTest, ZeroDeletesAtOnce) {
  testing::proves("RUL-06");
  const auto quarantine = open(0);
  take(*quarantine, "aa", 40);
  EXPECT_THAT(files_.paths(), IsEmpty());
}

TEST_F(QuarantineTest, MissingBlockIsNotFound) {
  const auto quarantine = open(100);
  const auto report = quarantine->take(*BlockHash::from_hex("ab"), 10);
  EXPECT_EQ(report.status().code(), Code::kNotFound);
  EXPECT_EQ(quarantine->bytes(), 0u);
}

TEST_F(QuarantineTest, OrderSurvivesReopening) {
  take(*open(100), "ff", 40);
  take(*open(100), "00", 40);
  const auto quarantine = open(100);
  EXPECT_EQ(quarantine->bytes(), 80u);
  take(*quarantine, "77", 40);
  EXPECT_THAT(kept(), ElementsAre("00-2.safetensors", "77-3.safetensors"));
}

TEST_F(QuarantineTest, OpeningWithASmallerBoundMakesItFit) {
  take(*open(100), "aa", 40);
  take(*open(100), "bb", 40);
  EXPECT_EQ(open(50)->bytes(), 40u);
  EXPECT_THAT(kept(), ElementsAre("bb-2.safetensors"));
  EXPECT_EQ(open(0)->bytes(), 0u);
  EXPECT_THAT(kept(), IsEmpty());
}

TEST_F(QuarantineTest, OtherThingsInItAreLeftAlone) {
  files_.write_all(".kvkeep/quarantine/notes.txt", "mine");
  files_.make_link(".kvkeep/quarantine/aa-1.safetensors");
  const auto quarantine = open(0);
  EXPECT_EQ(quarantine->bytes(), 0u);
  EXPECT_THAT(kept(), ElementsAre("aa-1.safetensors", "notes.txt"));
}

}  // namespace
}  // namespace kvkeep
