// Small blocks of every kind of state, changed in every way a file can be changed: each load of a
// changed file is a miss with its reason, and the file loads right before the change and after it
// is undone.
//
// One bit of every byte here; codec_test flips every bit of the same blocks below the cache.
#include <gtest/gtest.h>

#include <set>

#include "testing/proves.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using testing::TestBlock;
using testing::TestStore;

class CorruptionTest : public ::testing::Test {
 protected:
  CorruptionTest() {
    store_.options.quarantine_max_bytes = 0;  // Damaged files are deleted: thousands are.
    store_.open();
    for (const TestBlock& block : blocks_) {
      store_.save_and_write(block);
      files_.push_back(*store_.disk->read_all(store_.path(block)));
    }
  }
  // Loads the block from `bytes` in place of its file, then puts the file back.
  std::string load_from(size_t i, const std::string& bytes) {
    const TestBlock& block = blocks_[i];
    EXPECT_EQ(store_.load(block), "disk") << block.name;
    store_.disk->write_all(store_.path(block), bytes);
    const std::string got = store_.load(block);
    EXPECT_EQ(store_.load(block), got) << block.name;
    store_.save_and_write(block);  // Accepted again; then as it was.
    store_.disk->write_all(store_.path(block), files_[i]);
    return got;
  }
  void expect_refused(size_t i, const std::string& bytes, const std::string& change) {
    static const std::set<std::string> kReasons{"damaged", "version", "layout"};
    const std::string got = load_from(i, bytes);
    EXPECT_TRUE(kReasons.count(got) == 1) << blocks_[i].name << ", " << change << ": " << got;
  }

  TestStore store_;
  const std::vector<TestBlock> blocks_ = testing::all_kinds();
  std::vector<std::string> files_;
};

TEST_F(CorruptionTest, AFlippedBitInAnyByteIsAMiss) {
  testing::proves("DEF-11", "RUL-15", "RUL-16", "DEF-42");
  for (size_t i = 0; i < blocks_.size(); ++i) {
    for (size_t byte = 0; byte < files_[i].size(); ++byte) {
      std::string bad = files_[i];
      bad[byte] = static_cast<char>(bad[byte] ^ 1 << byte % 8);
      expect_refused(i, bad, "byte " + std::to_string(byte));
    }
  }
}

TEST_F(CorruptionTest, EveryTruncationIsAMiss) {
  for (size_t i = 0; i < blocks_.size(); ++i) {
    for (size_t size = 0; size < files_[i].size(); ++size) {
      expect_refused(i, files_[i].substr(0, size), "cut to " + std::to_string(size));
    }
  }
}

TEST_F(CorruptionTest, EverySwapOfTwoIsAMiss) {
  testing::proves("DEF-39", "DEF-70");
  for (size_t i = 0; i < blocks_.size(); ++i) {
    for (size_t other = 0; other < blocks_.size(); ++other) {
      if (other != i) expect_refused(i, files_[other], "file of " + blocks_[other].name);
    }
  }
}

}  // namespace
}  // namespace kvkeep
