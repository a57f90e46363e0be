#include "disk/recorded_limit.h"

#include <gtest/gtest.h>

#include "disk/store_layout.h"
#include "testing/mem_file_system.h"

namespace kvkeep {
namespace {

class RecordedLimitTest : public ::testing::Test {
 protected:
  RecordedLimitTest() { EXPECT_TRUE(files_.create_dirs(kServiceDir).ok()); }
  std::optional<uint64_t> read(const std::string& text) {
    files_.write_all(std::string(kLimitFile), text);
    return read_recorded_limit(files_);
  }
  testing::MemFileSystem files_;
};

TEST_F(RecordedLimitTest, WhatWasWrittenIsRead) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{50} << 30, UINT64_MAX}) {
    EXPECT_EQ(read(recorded_limit_text(bytes)), bytes);
    EXPECT_EQ(recorded_limit_text(bytes).size(), recorded_limit_text(1).size());
  }
}

TEST_F(RecordedLimitTest, NoFileOrADamagedOneIsNotKnown) {
  EXPECT_EQ(read_recorded_limit(files_), std::nullopt);
  for (const char* bad : {"", "{", "[]", "{}", "7", R"({"max_size_bytes": -1})",
                          R"({"max_size_bytes": "7"})", R"({"max_size_bytes": 7)"}) {
    EXPECT_EQ(read(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(read(recorded_limit_text(7) + std::string(5000, ' ')), std::nullopt);
}

}  // namespace
}  // namespace kvkeep
