#include "directory/verification.h"

#include <gtest/gtest.h>

#include <set>

#include "testing/seed_block.h"
#include "testing/status_matchers.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using testing::blk;
using testing::is_ok;

class VerificationTest : public ::testing::Test {
 protected:
  VerificationTest() { store_.open(); }
  VerifyTotals verify(std::shared_ptr<FileSystem> files, unsigned jobs = 1) {
    VerifyOptions options;
    options.jobs = jobs;
    bad_.clear();
    seen_ = 0;
    last_ = {};
    options.visit = [this](const VerifiedBlock& block) {
      ++seen_;
      if (!block.verdict.ok()) bad_.insert(block.hash.to_hex());
    };
    options.progress = [this](const VerifyProgress& progress) {
      EXPECT_EQ(progress.blocks, last_.blocks + 1);
      EXPECT_GE(progress.bytes, last_.bytes);
      last_ = progress;
    };
    const auto totals = verify_blocks(files, "/store", options);
    EXPECT_THAT(totals, is_ok());
    EXPECT_EQ(last_.blocks, last_.blocks_total);
    EXPECT_EQ(last_.bytes, last_.bytes_total);
    return totals.ok() ? *totals : VerifyTotals();
  }
  testing::TestStore store_;
  std::set<std::string> bad_;
  uint64_t seen_ = 0;
  VerifyProgress last_;
};

TEST_F(VerificationTest, WholeBlocksPassByAnyNumberOfJobs) {
  for (uint64_t k = 0; k < 20; ++k) store_.save_and_write(blk(k));
  for (const unsigned jobs : {0u, 1u, 4u, 100u}) {
    const VerifyTotals totals = verify(store_.disk, jobs);
    EXPECT_EQ(totals.blocks, 20u);
    EXPECT_EQ(seen_, 20u);
    EXPECT_EQ(totals.bytes, 20 * store_.file_bytes(blk(0)));
    EXPECT_EQ(totals.damaged + totals.not_read + totals.not_understood, 0u);
    EXPECT_TRUE(bad_.empty());
  }
}

TEST_F(VerificationTest, AnEmptyStoreIsFine) { EXPECT_EQ(verify(store_.disk).blocks, 0u); }

TEST_F(VerificationTest, OneFlippedByteAnywhereIsFound) {
  const auto small = testing::sized(3, 1200);
  store_.save_and_write(small);
  const std::string good = *store_.disk->read_all(store_.path(small));
  for (size_t byte = 0; byte < good.size(); ++byte) {
    std::string changed = good;
    changed[byte] = static_cast<char>(changed[byte] ^ 0x10);
    store_.disk->write_all(store_.path(small), changed);
    ASSERT_EQ(verify(store_.disk).damaged, 1u) << "byte " << byte;
  }
  store_.disk->write_all(store_.path(small), good);
  EXPECT_EQ(verify(store_.disk).damaged, 0u);
}

TEST_F(VerificationTest, AFileUnderTheNameOfAnotherBlockIsDamage) {
  store_.save_and_write(blk(1));
  store_.save_and_write(blk(2));
  store_.disk->write_all(store_.path(blk(1)), *store_.disk->read_all(store_.path(blk(2))));
  EXPECT_EQ(verify(store_.disk).damaged, 1u);
  EXPECT_EQ(bad_, std::set<std::string>{blk(1).hash.to_hex()});
}

TEST_F(VerificationTest, NothingIsWritten) {
  store_.save_and_write(blk(1));
  store_.save_and_write(blk(2));
  store_.disk->write_all(store_.path(blk(1)), "nonsense");
  const auto watched = std::make_shared<testing::FaultyFileSystem>(store_.disk);
  EXPECT_EQ(verify(watched).damaged, 1u);
  EXPECT_TRUE(watched->changes().empty());
  EXPECT_EQ(watched->count(testing::Op::kTryLock), 0u);
}

TEST_F(VerificationTest, AFileThatVanishesMeanwhileIsNotCounted) {
  store_.save_and_write(blk(1));
  store_.save_and_write(blk(2));
  const auto flaky = std::make_shared<testing::FaultyFileSystem>(store_.disk);
  flaky->plan().fail(testing::Op::kOpenRead, store_.path(blk(1)), ENOENT);
  EXPECT_EQ(verify(flaky).blocks, 1u);
  EXPECT_EQ(seen_, 1u);
}

TEST_F(VerificationTest, AReadThatFailsIsNotDamage) {
  store_.save_and_write(blk(1));
  const auto flaky = std::make_shared<testing::FaultyFileSystem>(store_.disk);
  flaky->plan().fail_every(testing::Op::kRead, store_.path(blk(1)), EIO);
  const VerifyTotals totals = verify(flaky);
  EXPECT_EQ(totals.not_read, 1u);
  EXPECT_EQ(totals.damaged, 0u);
  EXPECT_EQ(bad_.size(), 1u);
}

// Only the first time that a file is opened, its last byte reads wrong.
class WrongOnce final : public testing::FaultyFileSystem {
 public:
  WrongOnce(std::shared_ptr<FileSystem> inner, std::string path, uint64_t bytes)
      : FaultyFileSystem(std::move(inner)) {
    plan().flip_on_read(std::move(path), 8 * (bytes - 1));
  }
  Result<std::unique_ptr<ReadFile>> open_read(std::string_view path) override {
    if (opened_++ > 0) plan().clear();
    return FaultyFileSystem::open_read(path);
  }
  unsigned opened() const { return opened_; }

 private:
  unsigned opened_ = 0;
};

TEST_F(VerificationTest, DamageThatASecondReadDoesNotShowIsNone) {
  store_.save_and_write(blk(1));
  const auto flaky =
      std::make_shared<WrongOnce>(store_.disk, store_.path(blk(1)), store_.file_bytes(blk(1)));
  EXPECT_EQ(verify(flaky).damaged, 0u);
  EXPECT_EQ(flaky->opened(), 2u);
}

TEST_F(VerificationTest, FilesOfTheSeedPassWithoutADigest) {
  store_.disk->write_all(block_path(testing::seed_key()), testing::seed_bytes());
  const VerifyTotals totals = verify(store_.disk);
  EXPECT_EQ(totals.without_digest, 1u);
  EXPECT_EQ(totals.damaged, 0u);
}

}  // namespace
}  // namespace kvkeep
