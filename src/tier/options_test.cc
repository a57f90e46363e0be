#include "kvkeep/options.h"

#include <gtest/gtest.h>

#include "testing/fixed_system.h"
#include "testing/proves.h"

namespace kvkeep {
namespace {

using testing::FixedSystem;

uint32_t cap(int64_t ram_gib, uint64_t tokens, uint64_t bytes_per_token) {
  return max_pending_writes(tokens, bytes_per_token, FixedSystem(ram_gib));
}

TEST(MaxPendingWrites, FollowsTheFormula) {
  testing::proves("CAP-01", "CAP-02", "CAP-03", "CAP-04", "CAP-07");
  EXPECT_EQ(cap(64, 2048, 200'000), 32u);
  EXPECT_EQ(cap(64, 2048, 500'000), 20u);
  EXPECT_EQ(cap(64, 1, 1), 256u);
  EXPECT_EQ(cap(16, 256, 200'000), 33u);
  EXPECT_EQ(cap(64, 256, 200'000), 134u);
  EXPECT_EQ(cap(192, 256, 200'000), 256u);
  EXPECT_EQ(cap(64, 1024, 196'608), 34u);
  EXPECT_EQ(cap(8, 2048, 500'000), 2u);
  EXPECT_EQ(cap(1, 4096, 1'000'000), 1u);
  const uint32_t here = max_pending_writes(256, 200'000, *system_info());
  EXPECT_GE(here, 1u);
  EXPECT_LE(here, 256u);
}

TEST(MaxPendingWrites, DoesNotGrowWithLargerBlocks) {
  testing::proves("CAP-05", "CAP-06");
  EXPECT_LE(cap(64, 1024, 200'000), cap(64, 256, 200'000));
  EXPECT_LE(cap(64, 256, 400'000), cap(64, 256, 50'000));
}

TEST(MaxPendingWrites, IsFixedWhereTheRamSizeIsUnknown) {
  testing::proves("CAP-08", "CAP-09", "DEF-68");
  const Status failed(Code::kUnavailable, "no");
  EXPECT_EQ(max_pending_writes(256, 200'000, FixedSystem(failed, 1000)), 64u);
  EXPECT_EQ(max_pending_writes(256, 200'000, FixedSystem(4096, failed)), 64u);
  EXPECT_EQ(max_pending_writes(256, 200'000, FixedSystem(4096, -1)), 64u);
  EXPECT_EQ(max_pending_writes(256, 200'000, FixedSystem(0, 1000)), 64u);
}

TEST(Options, EachMistakeIsNamed) {
  testing::proves("INIT-08");
  Options good;
  good.cache_dir = "d";
  good.max_size_bytes = 1;
  EXPECT_TRUE(validate(good).ok());
  const auto refused = [&good](const char* name, auto spoil) {
    Options bad = good;
    spoil(bad);
    const Status status = validate(bad);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << name;
    EXPECT_EQ(status.message().rfind(name, 0), 0u) << status.message();
  };
  refused("cache_dir", [](Options& o) { o.cache_dir.reset(); });
  refused("cache_dir", [](Options& o) { o.cache_dir = ""; });
  refused("max_size_bytes", [](Options& o) { o.max_size_bytes = 0; });
  refused("max_size_bytes", [](Options& o) { o.max_size_bytes = UINT64_MAX; });
  refused("model_name", [](Options& o) { o.model_name = "\xff"; });
  refused("layer_types", [](Options& o) { o.layer_types = {"\xff"}; });
  refused("layer_types", [](Options& o) { o.num_layers = 2, o.layer_types = {"KVCache"}; });
  refused("identity", [](Options& o) { o.identity[""] = "x"; });
  refused("identity", [](Options& o) { o.identity["a"] = "\xff"; });
  refused("identity", [](Options& o) { o.identity["a"] = "b", o.profile = Profile::kSeedExact; });
  refused("require_digest",
          [](Options& o) { o.require_digest = true, o.profile = Profile::kSeedExact; });
  refused("pending_cap", [](Options& o) { o.pending_cap = 0; });
  refused("queue_wait", [](Options& o) { o.queue_wait = Duration(-1); });
  refused("close_deadline", [](Options& o) { o.close_deadline = Duration(-1); });
}

}  // namespace
}  // namespace kvkeep
