// Reads that fail, and reads that are shared.
#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

#include "testing/proves.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using std::chrono::seconds;
using testing::blk;
using testing::BlockedCalls;
using testing::Op;
using testing::proves;
using testing::TestStore;

class SuspectTest : public ::testing::Test {
 protected:
  SuspectTest() {
    store_.open();
    store_.save_and_write(blk(1));
    store_.restart();
  }
  CacheStats stats() { return store_.cache->stats(); }
  TestStore store_;
};

TEST_F(SuspectTest, AfterAFailedReadABlockIsLeftAloneForAWhile) {
  proves("RUL-13", "ERR-04", "DEF-36");
  for (const int error : {EIO, EMFILE, ENFILE, ENOMEM, EINTR, EAGAIN, ESTALE, ETIMEDOUT, EACCES}) {
    store_.files->plan().fail(Op::kOpenRead, "", error);
    EXPECT_EQ(store_.load(blk(1)), "unreadable") << error;
    EXPECT_FALSE(store_.cache->has_block(blk(1).hash));
    EXPECT_EQ(store_.load(blk(1)), "suspect");
    store_.clock->advance(seconds(1));
    EXPECT_TRUE(store_.cache->has_block(blk(1).hash));
    EXPECT_EQ(store_.load(blk(1)), "disk");  // Which also clears it.
    EXPECT_EQ(store_.load(blk(1)), "disk");
  }
  EXPECT_EQ(stats().load_transient_errors, 9u);
  EXPECT_EQ(stats().missed(MissReason::kSuspect), 9u);
  EXPECT_EQ(stats().errors, 0u);
}

TEST_F(SuspectTest, TheWaitDoublesAndTheThirdFailureIsTheLast) {
  proves("RUL-13", "ERR-04");
  store_.files->plan().fail_every(Op::kRead, "", EIO);
  EXPECT_EQ(store_.load(blk(1)), "unreadable");
  store_.clock->advance(seconds(1));
  EXPECT_EQ(store_.load(blk(1)), "unreadable");
  store_.clock->advance(seconds(1));
  EXPECT_EQ(store_.load(blk(1)), "suspect");
  store_.clock->advance(seconds(1));
  EXPECT_EQ(store_.load(blk(1)), "unreadable");
  store_.files->plan().clear();
  store_.clock->advance(std::chrono::hours(1));
  EXPECT_EQ(store_.load(blk(1)), "unreadable");
  EXPECT_EQ(stats().incompatible_files, 1u);
  EXPECT_TRUE(store_.disk->read_all(store_.path(blk(1))).has_value());
}

TEST_F(SuspectTest, AfterTheThirdFailureItLeavesFirst) {
  proves("RUL-13");
  store_.options.max_size_bytes = 3 * store_.file_bytes(blk(1)) + store_.own_bytes;
  store_.options.quarantine_max_bytes = 0;
  store_.restart();
  for (uint64_t k : {2, 3}) {
    store_.clock->advance(seconds(1));
    store_.save_and_write(blk(k));
  }
  store_.files->plan().fail_every(Op::kRead, "", EIO);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(store_.load(blk(3)), "unreadable");
    store_.clock->advance(seconds(60));
  }
  store_.files->plan().clear();
  store_.save_and_write(blk(4));
  EXPECT_TRUE(store_.cache->has_block(blk(1).hash));
  EXPECT_TRUE(store_.cache->has_block(blk(2).hash));
  EXPECT_FALSE(store_.disk->read_all(store_.path(blk(3))).has_value());
}

TEST_F(SuspectTest, ASaveReplacesASuspect) {
  proves("RUL-13");
  store_.files->plan().fail(Op::kRead, "", EIO);
  EXPECT_EQ(store_.load(blk(1)), "unreadable");
  EXPECT_EQ(store_.save(blk(1)), "queued");
  EXPECT_EQ(store_.load(blk(1)), "pending");
  store_.executor->run_all();
  EXPECT_EQ(store_.load(blk(1)), "disk");
  EXPECT_EQ(store_.block_bytes(), store_.file_bytes(blk(1)));
}

// The second load takes its seats for both blocks before it reads the other one.
TEST_F(SuspectTest, LoadsOfOneBlockShareOneRead) {
  proves("LOAD-15", "DEF-43");
  store_.save_and_write(blk(2));
  store_.files->clear_record();
  BlockedCalls first_read = store_.files->plan().block(Op::kRead, store_.path(blk(1)));
  BlockedCalls other_read = store_.files->plan().block(Op::kRead, store_.path(blk(2)));
  std::thread first([&] { EXPECT_EQ(store_.load(blk(1)), "disk"); });
  ASSERT_TRUE(first_read.wait_until_blocked());
  std::thread second([&] {
    const std::vector<BlockHash> keys{blk(1).hash, blk(2).hash};
    const auto results = store_.cache->load_blocks(keys, BatchMode::kEach);
    EXPECT_EQ(TestStore::outcome(blk(1), results[0]), "disk");
    EXPECT_EQ(TestStore::outcome(blk(2), results[1]), "disk");
  });
  ASSERT_TRUE(other_read.wait_until_blocked());
  other_read.release();
  first_read.release();
  first.join();
  second.join();
  EXPECT_EQ(store_.files->count(Op::kOpenRead, store_.path(blk(1))), 1u);
  EXPECT_EQ(stats().load_hits_disk, 3u);
}

// Each of two batches reads one block that the other one wants as well.
TEST_F(SuspectTest, LoadsThatWaitForEachOtherEnd) {
  proves("LOAD-08");
  store_.save_and_write(blk(2));
  const std::vector<BlockHash> forth{blk(1).hash, blk(2).hash};
  const std::vector<BlockHash> back{blk(2).hash, blk(1).hash};
  std::vector<std::thread> loaders;
  for (const auto* keys : {&forth, &back, &forth, &back}) {
    loaders.emplace_back([this, keys] {
      for (int i = 0; i < 50; ++i) {
        for (const auto& result : store_.cache->load_blocks(*keys, BatchMode::kEach))
          EXPECT_TRUE(result.ok());
      }
    });
  }
  for (std::thread& loader : loaders) loader.join();
  EXPECT_EQ(stats().load_hits_disk, 400u);
}

TEST(ReadFlights, AreSharedUntilTheyLand) {
  ReadFlights flights;
  auto leader = flights.take_seat(blk(1).hash, 1);
  auto other_file = flights.take_seat(blk(1).hash, 2);
  auto follower = flights.take_seat(blk(1).hash, 1);
  EXPECT_TRUE(leader.leads());
  EXPECT_TRUE(other_file.leads());
  EXPECT_FALSE(follower.leads());
  leader.land(Status(Code::kDataLoss, MissReason::kDamaged, "broken"));
  EXPECT_EQ(follower.wait().status().code(), Code::kDataLoss);
  EXPECT_TRUE(flights.take_seat(blk(1).hash, 1).leads());
}

TEST(ReadFlights, ALeaderThatGivesUpLeavesNobodyWaiting) {
  ReadFlights flights;
  ReadFlights::Seat follower;
  {
    const auto leader = flights.take_seat(blk(1).hash, 1);
    follower = flights.take_seat(blk(1).hash, 1);
  }
  EXPECT_EQ(follower.wait().status().miss_reason(), MissReason::kNoMemory);
}

}  // namespace
}  // namespace kvkeep
