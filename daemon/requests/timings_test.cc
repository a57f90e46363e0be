#include "daemon/requests/timings.h"

#include <gtest/gtest.h>

namespace kvkeep::daemon {
namespace {

const std::string kTimings =
    R"("timings":{"cache_n":9,"prompt_n":3,"prompt_ms":1.5,"predicted_n":7,"predicted_ms":2})";

TEST(Timings, AreFoundAtTheEndOfAnAnswer) {
  const auto found = find_timings(R"({"content":"x",)" + kTimings + "}");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->cache_n, 9u);
  EXPECT_EQ(found->prompt_n, 3u);
  EXPECT_EQ(found->prompt_ms, 1.5);
  EXPECT_EQ(found->predicted_n, 7u);
}

TEST(Timings, OfAStreamAreTheLast) {
  const std::string early = R"(data: {"timings":{"cache_n":0,"prompt_n":1}})";
  const auto found = find_timings(early + "\n\ndata: {" + kTimings + "}\n\ndata: [DONE]\n\n");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->cache_n, 9u);
}

TEST(Timings, MayBeginAnywhereInATail) {
  EXPECT_TRUE(find_timings(R"(half of a text", )" + kTimings + "}").has_value());
}

TEST(Timings, AreNotTakenFromWhatIsSaid) {
  EXPECT_FALSE(
      find_timings(R"({"content":"\"timings\":{\"cache_n\":1,\"prompt_n\":2}"})").has_value());
}

TEST(Timings, ThatMakeNoSenseAreNone) {
  for (const char* tail :
       {"", "{}", R"("timings":)", R"("timings":{)", R"("timings":}{)", R"("timings":[1])",
        R"("timings":{"cache_n":1})", R"("timings":{"cache_n":-1,"prompt_n":2})",
        R"("timings":{"cache_n":"1","prompt_n":2})", R"("timings":{"cache_n":1,"prompt_n":2)",
        R"("timings":{"cache_n":1e300,"prompt_n":2})", R"("timings":null})"}) {
    EXPECT_FALSE(find_timings(tail).has_value()) << tail;
  }
}

TEST(Timings, ThatAreNotToldAreZero) {
  const auto found = find_timings(R"("timings":{"cache_n":1,"prompt_n":2,"prompt_ms":null})");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->prompt_ms, 0.0);
  EXPECT_EQ(found->predicted_n, 0u);
}

}  // namespace
}  // namespace kvkeep::daemon
