#include "cli/store_stats.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace kvkeep::cli {
namespace {

BlockRecord block(const std::string& model, double created, double used) {
  BlockRecord record{
      {*BlockHash::from_hex("abcd"), "/s/a/abcd.safetensors", 100, created, used, {}}};
  record.allocated = 4096;
  record.meta.info.model_name = model;
  record.meta.info.token_count = 16;
  return record;
}

StoreStats some() {
  StoreStats stats{"/s"};
  BlockRecord known = block("m", 1000, 3000);
  known.identity = std::string(64, 'a');
  known.name_space = std::make_shared<const NamespaceInfo>(
      NamespaceInfo{*known.identity, {"m"}, {{"engine_build", "b7"}}, 0});
  BlockRecord bad = block("", 0, 9000);
  bad.state = BlockState::kUnreadable;
  for (const BlockRecord& record :
       {known, block("m", 2000, 2500), block("q\"\\\n", 500, 4000), bad})
    stats.add(record);
  stats.totals.blocks = 4;
  stats.totals.block_bytes = 4 * 4096;
  stats.totals.overhead_bytes = 10;
  return stats;
}

TEST(StoreStats, GroupsBlocksByModelIdentityAndState) {
  const auto json = nlohmann::json::parse(stats_json(some()));
  EXPECT_EQ(json["models"].size(), 2u);
  EXPECT_EQ(json["models"][0]["model_name"], "m");
  EXPECT_EQ(json["models"][0]["blocks"], 2);
  EXPECT_EQ(json["models"][0]["tokens"], 32);
  EXPECT_EQ(json["models"][0]["allocated_bytes"], 8192);
  EXPECT_EQ(json["models"][0]["last_access"], 3000);
  EXPECT_EQ(json["identities"][0]["build"], "b7");
  EXPECT_EQ(json["states"]["ok"], 3);
  EXPECT_EQ(json["states"]["unreadable"], 1);
  EXPECT_EQ(json["store_bytes"], 4 * 4096 + 10);
  EXPECT_EQ(json["oldest_created_at"], 500);
  EXPECT_EQ(json["newest_created_at"], 2000);
  EXPECT_EQ(json["oldest_last_access"], 2500);
  EXPECT_EQ(json["newest_last_access"], 9000);
}

TEST(StoreStats, AnEmptyStoreHasNoTimes) {
  const auto json = nlohmann::json::parse(stats_json(StoreStats{"/s"}));
  EXPECT_FALSE(json.contains("oldest_created_at"));
  EXPECT_EQ(json["blocks"], 0);
  EXPECT_EQ(stats_text(StoreStats{"/s"}, 0).find("created"), std::string::npos);
}

TEST(StoreStats, TheLimitIsShownWhereItIsKnown) {
  StoreStats stats = some();
  EXPECT_FALSE(nlohmann::json::parse(stats_json(stats)).contains("configured_max_size_bytes"));
  EXPECT_EQ(stats_prometheus(stats).find("max_size"), std::string::npos);
  EXPECT_NE(stats_text(stats, 0).find("limit         not known\n"), std::string::npos);
  stats.totals.max_size_bytes = 2 * stats.totals.store_bytes();
  const auto json = nlohmann::json::parse(stats_json(stats));
  EXPECT_EQ(json["configured_max_size_bytes"], 2 * (4 * 4096 + 10));
  EXPECT_EQ(json["utilization"], 0.5);
  EXPECT_NE(stats_text(stats, 0).find("50 % of it used"), std::string::npos);
  EXPECT_NE(stats_prometheus(stats).find("kvkeep_store_configured_max_size_bytes 32788\n"),
            std::string::npos);
}

TEST(StoreStats, PrometheusEscapesLabelsAndTypesEveryMetric) {
  const std::string text = stats_prometheus(some());
  EXPECT_NE(text.find("kvkeep_store_blocks{state=\"ok\"} 3\n"), std::string::npos);
  EXPECT_NE(text.find("kvkeep_store_model_blocks{model=\"q\\\"\\\\\\n\"} 1\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("kvkeep_store_last_use_seconds{of=\"newest\"} 9000.000\n"),
            std::string::npos);
  size_t begin = 0;
  std::string typed;
  while (begin < text.size()) {
    const std::string line = text.substr(begin, text.find('\n', begin) - begin);
    begin += line.size() + 1;
    if (line.rfind("# TYPE ", 0) == 0) typed = line.substr(7, line.find(' ', 7) - 7);
    if (line[0] != '#') {
      EXPECT_EQ(line.substr(0, line.find_first_of("{ ")), typed);
    }
  }
}

TEST(StoreStats, TextNamesBuilds) {
  const std::string text = stats_text(some(), 10000);
  EXPECT_NE(text.find("(build b7): 1 block"), std::string::npos) << text;
  EXPECT_NE(text.find("unreadable: 1 block"), std::string::npos);
}

}  // namespace
}  // namespace kvkeep::cli
