// What is counted and what is logged.

#include "daemon/report/tally.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>

#include "daemon/report/log.h"

namespace kvkeep::daemon {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

TEST(Tally, HitRateIsOfTheTokensLookedUp) {
  Tally tally;
  EXPECT_EQ(tally.hit_rate(), 0.0);
  tally.prompt_tokens = 100;
  tally.restored_tokens = 30;
  tally.live_tokens = 20;
  EXPECT_EQ(tally.hit_rate(), 0.5);
  EXPECT_EQ(Json(tally.to_json())["hit_rate"], 0.5);
}

TEST(Tally, JsonHasEveryCounterAndReason) {
  Tally tally;
  tally.saves = 3;
  tally.reasons["lora"] = 2;
  const Json json = tally.to_json();
  EXPECT_EQ(json["saves"], 3);
  EXPECT_EQ(json["reasons"]["lora"], 2);
  EXPECT_EQ(json["blocks_stored"], 0);
}

// Every line is a comment or "name{label} value"; each name has help and type before it.
TEST(Tally, PrometheusCanReadIt) {
  Tally tally;
  tally.reasons = {{"lora", 2}, {"not_json", 1}};
  tally.seconds_saved = 1.5;
  std::istringstream lines(tally.to_prometheus());
  const std::regex comment("# (HELP|TYPE) ([a-z_]+) .+");
  const std::regex sample(R"((kvkeep_llama_[a-z_]+_total)(\{reason="[a-z_]+"\})? [0-9.e+]+)");
  std::set<std::string> typed, seen;
  std::string line;
  while (std::getline(lines, line)) {
    std::smatch match;
    if (std::regex_match(line, match, comment)) {
      if (match[1] == "TYPE") typed.insert(match[2]);
      continue;
    }
    ASSERT_TRUE(std::regex_match(line, match, sample)) << line;
    EXPECT_EQ(typed.count(match[1]), 1u) << line;
    EXPECT_TRUE(seen.insert(match[1].str() + match[2].str()).second) << line;
  }
  EXPECT_EQ(seen.count("kvkeep_llama_restored_tokens_total"), 1u);
  EXPECT_EQ(seen.count("kvkeep_llama_reason_total{reason=\"lora\"}"), 1u);
}

class LogLines : public ::testing::Test {
 protected:
  std::string of(const LogSettings& settings, const std::function<void(Log&)>& work) {
    ::testing::internal::CaptureStderr();
    {
      Log log(settings);
      work(log);
    }
    return ::testing::internal::GetCapturedStderr();
  }
};

TEST_F(LogLines, BeginWithTheProgramsName) {
  EXPECT_EQ(of({}, [](Log& log) { log.info("ready {} %v"); }), "kvkeep: ready {} %v\n");
}

TEST_F(LogLines, AreThoseOfTheLevelAndAbove) {
  const auto all = [](Log& log) {
    log.debug("d");
    log.info("i");
    log.warn("w");
    log.log(LogLevel::kError, "e");
  };
  EXPECT_EQ(of({LogLevel::kWarning, false}, all), "kvkeep: w\nkvkeep: e\n");
  EXPECT_EQ(of({LogLevel::kDebug, false}, all), "kvkeep: d\nkvkeep: i\nkvkeep: w\nkvkeep: e\n");
}

TEST_F(LogLines, AreJsonWithDetails) {
  const std::string line = of({LogLevel::kInfo, true}, [](Log& log) {
    log.log(LogLevel::kInfo, "say \"hi\"\n\xff", {{"slot", 3}});
  });
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  const Json json = Json::parse(line);
  EXPECT_EQ(json["level"], "info");
  EXPECT_THAT(json["message"].get<std::string>(), HasSubstr("say \"hi\"\n"));
  EXPECT_EQ(json["slot"], 3);
  EXPECT_TRUE(json["time"].is_number());
}

// What a server says may hold anything.
TEST_F(LogLines, AreOneLineEach) {
  const std::string line = of({}, [](Log& log) { log.info("a\nkvkeep: b\r\x1b[31mred"); });
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  EXPECT_THAT(line, Not(HasSubstr("\x1b")));
  EXPECT_THAT(line, Not(HasSubstr("\r")));
}

TEST_F(LogLines, OfTheLibraryAreDetails) {
  const auto work = [](Log& log) {
    StoreLog store(log);
    store.log(LogLevel::kInfo, "opened");
    store.log(LogLevel::kWarning, "careful");
  };
  EXPECT_EQ(of({}, work), "kvkeep: careful\n");
}

TEST(LogLevels, HaveNames) {
  EXPECT_EQ(*log_level_from_name("warning"), LogLevel::kWarning);
  for (const char* name : {"", "Info", "trace", "warn"}) {
    EXPECT_EQ(log_level_from_name(name).status().code(), Code::kInvalidArgument) << name;
  }
}

}  // namespace
}  // namespace kvkeep::daemon
