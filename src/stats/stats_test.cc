#include "stats/stats.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "testing/proves.h"

namespace kvkeep {
namespace {

TEST(Stats, StartAtZero) {
  testing::proves("STAT-01");
  const CacheStats s = Stats().snapshot();
  EXPECT_EQ(s.hits + s.misses + s.saves + s.loads + s.errors + s.lookups, 0u);
}

TEST(Stats, SnapshotsAreConsistentAndLoseNothing) {
  testing::proves("STAT-08", "DEF-09");
  Stats stats;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&stats] {
      for (int i = 0; i < 2000; ++i) {
        stats.add({{&CacheStats::lookups}, {&CacheStats::load_hits}});
        stats.add_miss(MissReason::kAbsent, {{&CacheStats::misses}});
        const CacheStats s = stats.snapshot();
        ASSERT_EQ(s.lookups, s.load_hits + s.missed(MissReason::kAbsent));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(stats.snapshot().lookups, 16000u);
  EXPECT_EQ(stats.snapshot().misses, 8000u);
}

TEST(Stats, JsonHasEveryNameOnce) {
  CacheStats s;
  s.lookups = 3;
  s.miss_reason[static_cast<size_t>(MissReason::kDamaged)] = 2;
  s.save_refused[static_cast<size_t>(Refusal::kNoSpace)] = 1;
  const auto json = nlohmann::json::parse(to_json(s));
  EXPECT_EQ(json["lookups"], 3);
  EXPECT_EQ(json["miss_reason"]["damaged"], 2);
  EXPECT_EQ(json["miss_reason"].size(), kMissReasonCount);
  EXPECT_EQ(json["save_refused"]["no_space"], 1);
  EXPECT_EQ(json["max_size_bytes"], 0);
}

TEST(Stats, TimesGoIntoTheFirstBucketThatHoldsThem) {
  LoadTimes times;
  for (const uint64_t ns : {0, 1000, 1001, 4000, 2'000'000'000}) times.add(ns);
  EXPECT_EQ(times.buckets[0], 2u);
  EXPECT_EQ(times.buckets[1], 2u);
  EXPECT_EQ(times.buckets.back(), 1u);
  EXPECT_EQ(times.count, 5u);
}

TEST(Stats, PrometheusTextHasCountersReasonsAndHistograms) {
  CacheStats s;
  s.lookups = 3;
  s.num_blocks = 7;
  s.miss_reason[static_cast<size_t>(MissReason::kDamaged)] = 2;
  s.load_times[static_cast<size_t>(Source::kHot)].add(2000);
  const std::string text = to_prometheus(s);
  for (const char* line :
       {"# TYPE kvkeep_lookups_total counter\nkvkeep_lookups_total 3\n", "kvkeep_num_blocks 7\n",
        "kvkeep_miss_reason_total{reason=\"damaged\"} 2\n",
        "kvkeep_load_seconds_bucket{source=\"hot\",le=\"1e-06\"} 0\n",
        "kvkeep_load_seconds_bucket{source=\"hot\",le=\"4e-06\"} 1\n",
        "kvkeep_load_seconds_bucket{source=\"hot\",le=\"+Inf\"} 1\n",
        "kvkeep_load_seconds_sum{source=\"hot\"} 2e-06\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

TEST(Stats, UtilizationIsAShareOfTheLimitInForce) {
  testing::proves("STAT-05");
  CacheStats s;
  EXPECT_EQ(s.utilization(), 0.0);
  s.max_size_bytes = 200;
  s.total_size_bytes = 50;
  EXPECT_EQ(s.utilization(), 0.25);
}

}  // namespace
}  // namespace kvkeep
