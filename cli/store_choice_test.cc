#include "cli/store_choice.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "testing/temp_dir.h"

namespace kvkeep::cli {
namespace {

namespace fs = std::filesystem;

class StoreChoiceTest : public ::testing::Test {
 protected:
  StoreChoiceTest() { set_["XDG_CACHE_HOME"] = dir_.path().string(); }
  fs::path make_store(const std::string& name) {
    const fs::path store = dir_.path() / "kvkeep" / name;
    fs::create_directories(store / ".kvkeep");
    return store;
  }
  Variables variables() const {
    return [this](const char* name) -> std::optional<std::string> {
      const auto at = set_.find(name);
      return at != set_.end() ? std::optional(at->second) : std::nullopt;
    };
  }
  // What parsing makes of `--dir` and KVKEEP_DIR.
  Result<fs::path> choose(std::optional<std::string> word, std::optional<std::string> flag = {}) {
    Arguments arguments;
    if (flag) arguments.values["dir"] = *flag;
    if (!flag && set_.count("KVKEEP_DIR") == 1) arguments.values["dir"] = set_["KVKEEP_DIR"];
    return choose_store(word, arguments, variables());
  }
  const testing::TempDir dir_;
  std::map<std::string, std::string> set_;
};

TEST_F(StoreChoiceTest, TheOnlyStoreIsTaken) {
  const fs::path store = make_store("python");
  fs::create_directories(dir_.path() / "kvkeep" / "something-else");
  EXPECT_EQ(*choose({}), store);
  set_.erase("XDG_CACHE_HOME");
  set_["HOME"] = dir_.path().string();
  EXPECT_FALSE(choose({}).ok());
  fs::create_directories(dir_.path() / ".cache");
  fs::rename(dir_.path() / "kvkeep", dir_.path() / ".cache" / "kvkeep");
  EXPECT_EQ(*choose({}), dir_.path() / ".cache" / "kvkeep" / "python");
}

TEST_F(StoreChoiceTest, SeveralStoresAreListedAndNoneIsTaken) {
  make_store("llama");
  make_store("mlx");
  const auto none = choose({});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), Code::kInvalidArgument);
  EXPECT_NE(none.status().message().find("llama"), std::string::npos);
  EXPECT_NE(none.status().message().find("mlx"), std::string::npos);
}

TEST_F(StoreChoiceTest, NoStoreIsNotFound) {
  EXPECT_EQ(choose({}).status().code(), Code::kNotFound);
  set_.clear();
  EXPECT_EQ(choose({}).status().code(), Code::kNotFound);
}

TEST_F(StoreChoiceTest, AWordWinsOverTheFlagsVariableAndTheFlagOverTheOnlyStore) {
  make_store("python");
  EXPECT_EQ(*choose({}, "/flag"), "/flag");
  set_["KVKEEP_DIR"] = "/variable";
  EXPECT_EQ(*choose({}), "/variable");
  EXPECT_EQ(*choose("/word"), "/word");
  EXPECT_EQ(*choose({}, "/flag"), "/flag");
  EXPECT_EQ(choose("/word", "/flag").status().code(), Code::kInvalidArgument);
}

TEST_F(StoreChoiceTest, AKeyIsAtLeastSixHexCharactersAndNoDirectory) {
  EXPECT_TRUE(looks_like_key("abcdef"));
  EXPECT_TRUE(looks_like_key("ABCDEF0123"));
  EXPECT_FALSE(looks_like_key("abcde"));
  EXPECT_FALSE(looks_like_key("abcdeg"));
  EXPECT_FALSE(looks_like_key("./abcdef"));
  EXPECT_FALSE(looks_like_key(""));
}

TEST_F(StoreChoiceTest, ABeginningStandsForTheOneKeyThatHasIt) {
  const fs::path store = make_store("s");
  fs::create_directories(store / "a");
  const auto touch = [&](const std::string& name) { std::ofstream(store / "a" / name) << ""; };
  touch("abcdef01.safetensors");
  touch("abcdef0123.safetensors");
  touch("abcdef99.safetensors");
  EXPECT_EQ(resolve_key(store, "ABCDEF9")->to_hex(), "abcdef99");
  EXPECT_EQ(resolve_key(store, "abcdef01")->to_hex(), "abcdef01") << "a whole key is itself";
  const auto several = resolve_key(store, "abcdef");
  EXPECT_EQ(several.status().code(), Code::kInvalidArgument);
  EXPECT_NE(several.status().message().find("abcdef0123"), std::string::npos);
  EXPECT_EQ(resolve_key(store, "abcde").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(resolve_key(store, "nohexy").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(resolve_key(store, "bbbbbb").status().code(), Code::kNotFound);
}

TEST_F(StoreChoiceTest, AKeyThatIsAskedAboutNeedNotBeServed) {
  const fs::path store = make_store("s");
  fs::create_directories(store / ".kvkeep" / "quarantine");
  std::ofstream(store / ".kvkeep" / "quarantine" / "abcdef99-3.safetensors") << "";
  EXPECT_EQ(resolve_key(store, "abcdef").status().code(), Code::kNotFound);
  EXPECT_EQ(resolve_asked_key(store, "abcdef")->to_hex(), "abcdef99");
  fs::create_directories(store / "a");
  std::ofstream(store / "a" / "abcdef01.safetensors") << "";
  EXPECT_EQ(resolve_asked_key(store, "abcdef")->to_hex(), "abcdef01") << "what is served is meant";
  const std::string whole(64, 'b');
  EXPECT_EQ(resolve_asked_key(store, whole)->to_hex(), whole);
  EXPECT_EQ(resolve_asked_key(store, "bbbbbb").status().code(), Code::kNotFound);
  EXPECT_EQ(resolve_asked_key(store, "bbbbb").status().code(), Code::kInvalidArgument);
}

TEST_F(StoreChoiceTest, AWordThatIsNoKeyBeforeKeysIsTheStore) {
  EXPECT_EQ(split_words({}).dir, std::nullopt);
  EXPECT_EQ(split_words({"abcdef", "x"}).dir, std::nullopt);
  EXPECT_EQ(split_words({"abcdef", "x"}).keys, (std::vector<std::string>{"abcdef", "x"}));
  EXPECT_EQ(split_words({"./abcdef", "abcdef"}).dir, "./abcdef");
  EXPECT_EQ(split_words({"./abcdef", "abcdef"}).keys, std::vector<std::string>{"abcdef"});
}

}  // namespace
}  // namespace kvkeep::cli
