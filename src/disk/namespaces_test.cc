#include "disk/namespaces.h"

#include <gtest/gtest.h>

#include "disk/service_file.h"
#include "disk/store_layout.h"
#include "testing/faulty_file_system.h"
#include "testing/mem_file_system.h"
#include "testing/status_matchers.h"

namespace kvkeep {
namespace {

using testing::is_ok;

class NamespacesTest : public ::testing::Test {
 protected:
  NamespacesTest() { EXPECT_TRUE(files_.create_dirs(kServiceDir).ok()); }
  static std::string digest(uint64_t n) {
    const std::string digits = std::to_string(n);
    return std::string(64 - digits.size(), '0') + digits;
  }
  std::string record(uint64_t n, std::map<std::string, std::string> fields, double now,
                     const std::string& model = "m", uint64_t max_bytes = 1 << 20) {
    return record({{digest(n), model, std::move(fields), now}}, max_bytes);
  }
  // What was damaged, if anything was.
  std::string record(const std::vector<NamespaceClaim>& claims, uint64_t max_bytes = 1 << 20) {
    std::string damage;
    const auto text = namespaces_with(files_, claims, max_bytes, damage);
    EXPECT_THAT(text, is_ok());
    if (text.ok() && !text->empty()) {
      EXPECT_THAT(replace_service_file(files_, kNamespacesFile, *text), is_ok());
    }
    return damage;
  }
  Namespaces read() {
    const auto all = read_namespaces(files_);
    EXPECT_THAT(all, is_ok());
    return all.ok() ? *all : Namespaces();
  }
  std::string text() { return files_.read_all(std::string(kNamespacesFile)).value_or(""); }

  testing::MemFileSystem files_;
};

TEST_F(NamespacesTest, NoFileIsNoNamespace) { EXPECT_TRUE(read().empty()); }

TEST_F(NamespacesTest, WhatWasRecordedIsRead) {
  record(1, {{"build", "b7"}, {"kv_dtype", "f16 \"é\""}}, 100);
  record(2, {{"build", "b8"}}, 200, "n");
  const Namespaces all = read();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all.at(digest(1)).fields.at("kv_dtype"), "f16 \"é\"");
  EXPECT_EQ(all.at(digest(1)).model_names, std::vector<std::string>{"m"});
  EXPECT_EQ(all.at(digest(1)).recorded_at, 100);
  EXPECT_EQ(all.at(digest(2)).fields.at("build"), "b8");
}

TEST_F(NamespacesTest, ASaltIsNeverWritten) {
  record(1, {{"salt", "hush-hush"}, {"build", "b"}}, 100);
  EXPECT_EQ(read().at(digest(1)).fields.at("salt"), "salted");
  EXPECT_EQ(text().find("hush"), std::string::npos);
}

TEST_F(NamespacesTest, AnIdentityThatIsListedIsNotWrittenAgain) {
  record(1, {{"build", "b"}}, 100);
  const std::string before = text();
  record(1, {{"build", "b"}}, 900);
  EXPECT_EQ(text(), before);
  record(1, {{"build", "b"}}, 950, "another");
  EXPECT_EQ(read().at(digest(1)).model_names, (std::vector<std::string>{"m", "another"}));
}

TEST_F(NamespacesTest, RootsAreToldFromIdentities) {
  record({{digest(1), "m", {{"build", "b7"}}, 100},
          {digest(2), "m", {{"model", "m"}, {"salt", "hush"}}, 200, true}});
  const Namespaces all = read();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_FALSE(all.at(digest(1)).is_root);
  EXPECT_TRUE(all.at(digest(2)).is_root);
  EXPECT_EQ(all.at(digest(2)).fields.at("salt"), "salted");
}

TEST_F(NamespacesTest, TheOldestEntriesLeave) {
  std::string many = "{";
  for (uint64_t n = 0; n < kNamespacesMax; ++n) {
    many += (n > 0 ? "," : "") + ("\"" + digest(n) + "\"") +
            R"(:{"kind":"identity","model_names":["m"],"fields":{},"recorded_at":)" +
            std::to_string(5000 - n) + "}";
  }
  files_.write_all(std::string(kNamespacesFile), many + "}");
  record(90000, {{"build", "b"}}, 1);  // Oldest by its time, but it is the one that writes.
  const Namespaces all = read();
  EXPECT_EQ(all.size(), kNamespacesMax);
  EXPECT_EQ(all.count(digest(90000)), 1u);
  EXPECT_EQ(all.count(digest(kNamespacesMax - 1)), 0u);
  EXPECT_EQ(all.count(digest(0)), 1u);
}

TEST_F(NamespacesTest, BytesAreBoundedToo) {
  for (uint64_t n = 0; n < 20; ++n) {
    record(n, {{"build", std::string(100, 'x')}}, static_cast<double>(n), "m", 1024);
  }
  EXPECT_LE(text().size(), 1024u);
  EXPECT_EQ(read().count(digest(19)), 1u);
  EXPECT_EQ(read().count(digest(0)), 0u);
  const std::string before = text();
  record(50, {{"build", std::string(5000, 'x')}}, 99, "m", 1024);
  EXPECT_EQ(text(), before) << "an entry that can never fit must not push the others out";
}

TEST_F(NamespacesTest, DamageIsToldAndReplaced) {
  for (const char* bad :
       {"", "{", "[]", "{\"x\": 1}", "{\"x\": {\"fields\": {\"a\": 1}}}",
        R"({"x":{"kind":"riddle","model_names":[],"fields":{},"recorded_at":1.0}})"}) {
    files_.write_all(std::string(kNamespacesFile), bad);
    EXPECT_EQ(read_namespaces(files_).status().code(), Code::kDataLoss) << bad;
    EXPECT_NE(record(1, {{"build", "b"}}, 100), "") << bad;
    EXPECT_EQ(read().size(), 1u) << bad;
    EXPECT_EQ(record(1, {{"build", "b"}}, 100), "") << bad;
  }
}

TEST_F(NamespacesTest, ALeftoverOfAnEndedWriterIsInNobodysWay) {
  files_.write_all(std::string(kNamespacesFile) + ".tmp", "half");
  record(1, {{"build", "b"}}, 100);
  EXPECT_EQ(read().size(), 1u);
  EXPECT_FALSE(files_.read_all(std::string(kNamespacesFile) + ".tmp"));
}

}  // namespace
}  // namespace kvkeep
