#include "cli/why_question.h"

#include <gtest/gtest.h>

namespace kvkeep::cli {
namespace {

class WhyQuestionTest : public ::testing::Test {
 protected:
  Result<WhyQuestion> ask() {
    return why_question(arguments_, [this](const char* name) -> std::optional<std::string> {
      const auto at = variables_.find(name);
      return at != variables_.end() ? std::optional(at->second) : std::nullopt;
    });
  }
  std::string refusal() {
    const auto question = ask();
    EXPECT_EQ(question.status().code(), Code::kInvalidArgument);
    return question.status().message();
  }

  Arguments arguments_;
  std::map<std::string, std::string> variables_;
};

TEST_F(WhyQuestionTest, FlagsAreTheNamespaceOfAPrompt) {
  arguments_.words = {"store"};
  arguments_.values = {{"tokens", "-"}, {"model", "m"}, {"adapter", "a"}, {"salt", "s"}};
  arguments_.lists["field"] = {"build=b=7", "kv_dtype="};
  const auto question = ask();
  ASSERT_TRUE(question.ok()) << question.status().to_string();
  EXPECT_EQ(question->dir, "store");
  EXPECT_EQ(question->file, "-");
  EXPECT_EQ(
      question->prompt.fields,
      (Namespace{
          {"adapter", "a"}, {"build", "b=7"}, {"kv_dtype", ""}, {"model", "m"}, {"salt", "s"}}));
  EXPECT_EQ(question->prompt.block_size, 256u);
  EXPECT_EQ(question->prompt.recipe, KeyRecipe::kKvkeep1);
  EXPECT_FALSE(question->prompt.expected.identity);
  arguments_.values["block-size"] = "64";
  arguments_.values["recipe"] = "omlx-1";
  arguments_.lists["identity"] = {"build=b8"};
  EXPECT_EQ(ask()->prompt.block_size, 64u);
  EXPECT_EQ(ask()->prompt.recipe, KeyRecipe::kOmlx1);
  EXPECT_EQ(ask()->prompt.expected.identity, (Namespace{{"build", "b8"}}));
}

TEST_F(WhyQuestionTest, WithKeysFlagsAreWhatTheCacheExpects) {
  arguments_.words = {"store", "abcdef", "abcdef12"};
  arguments_.values = {{"model", "m"}, {"block-size", "64"}};
  const auto question = ask();
  ASSERT_TRUE(question.ok()) << question.status().to_string();
  EXPECT_EQ(question->keys, (std::vector<std::string>{"abcdef", "abcdef12"}));
  EXPECT_EQ(question->expected.layout.model_name, "m");
  EXPECT_EQ(question->expected.layout.block_size, 64u);
}

TEST_F(WhyQuestionTest, WhatSaysNothingAboutAKeyIsRefusedUnlessAVariableGivesIt) {
  arguments_.words = {"abcdef"};
  arguments_.values = {{"salt", "s"}};
  EXPECT_EQ(refusal().rfind("--salt: only with --tokens", 0), 0u);
  variables_["KVKEEP_SALT"] = "s";
  EXPECT_TRUE(ask().ok());
  arguments_.lists["field"] = {"build=b7"};
  EXPECT_EQ(refusal().rfind("--field: only with --tokens", 0), 0u);
}

TEST_F(WhyQuestionTest, MistakesSayWhatToWrite) {
  EXPECT_NE(refusal().find("name a key, or --tokens"), std::string::npos);
  arguments_.values["tokens"] = "-";
  for (const char* field : {"build", "=b7", ""}) {
    arguments_.lists["field"] = {field};
    EXPECT_NE(refusal().find("write NAME=VALUE"), std::string::npos) << field;
  }
  arguments_.values["model"] = "m";
  arguments_.lists["field"] = {"model=n"};
  EXPECT_NE(refusal().find("--field model: given twice"), std::string::npos);
  arguments_.lists.clear();
  arguments_.values["recipe"] = "omlx-9";
  EXPECT_NE(refusal().find("kvkeep-1"), std::string::npos);
  arguments_.words = {"abcdef"};
  EXPECT_NE(refusal().find("contradict"), std::string::npos);
}

}  // namespace
}  // namespace kvkeep::cli
