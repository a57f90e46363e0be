// Blocks of other builds of the server: which they are, and that they leave first.

#include "daemon/other_builds.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "daemon/slots/whole_slots.h"
#include "testing/temp_dir.h"

namespace kvkeep::daemon {
namespace {

constexpr size_t kSlotBytes = 1'000'000;

class OtherBuilds : public ::testing::Test {
 protected:
  static Namespace fields(const std::string& build, const std::string& model = "m") {
    return {{"build", build}, {"model_digest", model}};
  }
  // The store as a server of this kind uses it.
  void open(const Namespace& identity) {
    cache_.reset();
    Options options;
    options.cache_dir = dir_.path();
    options.max_size_bytes = 64 << 20;
    options.identity = identity;
    options.hot_max_bytes = 0;
    options.background_reclaim = 0;
    auto opened = TieredBlockCache::open(std::move(options), {});
    ASSERT_TRUE(opened.ok()) << opened.status().to_string();
    cache_ = *std::move(opened);
    identity_ = identity;
  }
  // A slot that is kept whole, of these two tokens. On disk when it returns.
  void keep(uint32_t token, const std::string& salt = "") {
    Result<WholeSlots> slots = WholeSlots::open(*cache_, identity_, "model");
    ASSERT_TRUE(slots.ok()) << slots.status().to_string();
    const auto bytes = std::make_shared<const std::vector<std::byte>>(kSlotBytes);
    const Tensor file{DType::kU8, {kSlotBytes}, SharedBytes{bytes, std::span(*bytes)}};
    const auto kept = slots->keep(std::vector<uint32_t>{token, 0}, file, salt);
    ASSERT_TRUE(kept.ok() && kept->refused.ok());
    ASSERT_TRUE(cache_->flush().ok());
  }
  bool has(uint32_t token) {
    Result<WholeSlots> slots = WholeSlots::open(*cache_, identity_, "model");
    return slots->match(std::vector<uint32_t>{token, 0, 1}, "")->tokens == 2;
  }
  std::vector<OtherBuild> others() { return blocks_of_other_builds(dir_.path(), identity_); }

  testing::TempDir dir_;
  std::unique_ptr<TieredBlockCache> cache_;
  Namespace identity_;
};

TEST_F(OtherBuilds, AreCountedEachByItselfWithSaltedAndWholeSlots) {
  open(fields("b1"));
  keep(1);
  keep(2, "a salt");
  open(fields("b2"));
  keep(1);
  open(fields("b1", "another model"));
  keep(1);
  open(fields("b3"));
  keep(1);
  const std::vector<OtherBuild> found = others();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].build, "b1");
  EXPECT_EQ(found[0].blocks.size(), 2u);
  EXPECT_GE(found[0].bytes, 2 * kSlotBytes);
  EXPECT_EQ(found[1].build, "b2");
  EXPECT_EQ(found[1].blocks.size(), 1u);
}

TEST_F(OtherBuilds, LeaveBeforeOlderBlocksOfThisBuild) {
  open(fields("b2"));
  for (uint32_t token : {1, 2}) keep(token);
  open(fields("b1"));
  for (uint32_t token : {3, 4}) keep(token);
  open(fields("b2"));
  ASSERT_EQ(others().size(), 1u);
  EXPECT_EQ(cache_->evict_first(others()[0].blocks), 2u);
  // Room for less than a slot, beside what is always kept free.
  cache_->set_configured_max_size(cache_->tracked_size() + kSlotBytes / 2);
  for (uint32_t token : {5, 6}) {
    keep(token);
    EXPECT_TRUE(has(1) && has(2) && has(token));
  }
  EXPECT_TRUE(others().empty());
  keep(7);  // From here on as ever.
  EXPECT_FALSE(has(1));
  EXPECT_TRUE(has(2) && has(5) && has(6) && has(7));
}

TEST_F(OtherBuilds, AreServedAgainToTheirOwnBuild) {
  open(fields("b1"));
  keep(1);
  open(fields("b2"));
  keep(2);
  ASSERT_EQ(others().size(), 1u);
  EXPECT_EQ(cache_->evict_first(others()[0].blocks), 1u);
  EXPECT_FALSE(has(1));
  open(fields("b1"));
  EXPECT_TRUE(has(1));
  ASSERT_EQ(others().size(), 1u);
  EXPECT_EQ(others()[0].build, "b2");
}

TEST_F(OtherBuilds, OfAnEmptyStoreThereAreNone) {
  open(fields("b1"));
  EXPECT_TRUE(others().empty());
  EXPECT_TRUE(blocks_of_other_builds(dir_.path() / "not there", identity_).empty());
}

}  // namespace
}  // namespace kvkeep::daemon
