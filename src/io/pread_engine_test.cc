#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "io/buffer_pool.h"
#include "io/posix_file_system.h"
#include "io/read_engine.h"
#include "testing/faulty_file_system.h"
#include "testing/mem_file_system.h"
#include "testing/proves.h"
#include "testing/status_matchers.h"
#include "testing/temp_dir.h"

namespace kvkeep {
namespace {

using testing::fails_with;
using testing::is_ok;
using testing::Op;

std::string pattern(size_t bytes) {
  std::string text(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 7 + i / 4096);
  return text;
}

// Says where it differs. (Equality of long strings would print them.)
MATCHER_P(is_pattern_of, bytes, "is the first bytes of the pattern") {
  const std::string wanted = pattern(bytes);
  const std::string_view got = arg;
  const size_t common = std::min(wanted.size(), got.size());
  const auto differs = std::mismatch(got.begin(), got.begin() + common, wanted.begin());
  *result_listener << got.size() << " bytes, of which the first " << differs.first - got.begin()
                   << " are right";
  return got == wanted;
}

// An engine over a disk that can fail, and one buffer for each request.
class PreadEngineTest : public ::testing::Test {
 protected:
  // The bytes that were read, or the Status.
  std::string read(const std::string& path, size_t buffer_bytes) {
    const std::vector<std::string> all = read_all({path}, buffer_bytes);
    return all.front();
  }

  std::vector<std::string> read_all(const std::vector<std::string>& paths, size_t buffer_bytes) {
    std::vector<std::string> buffers(paths.size(), std::string(buffer_bytes, '?'));
    std::vector<ReadRequest> requests;
    for (size_t i = 0; i < paths.size(); ++i) {
      auto* data = reinterpret_cast<std::byte*>(buffers[i].data());
      requests.push_back({paths[i], {data, buffer_bytes}});
    }
    outcomes_.clear();
    engine_->read_files(requests, [&](size_t index, ReadOutcome outcome) {
      EXPECT_TRUE(outcomes_.emplace(index, outcome).second) << "twice " << index;
      EXPECT_EQ(std::this_thread::get_id(), thread_);
    });
    EXPECT_EQ(outcomes_.size(), paths.size());
    for (size_t i = 0; i < paths.size(); ++i) {
      buffers[i].resize(outcomes_[i].bytes_read);
      if (!outcomes_[i].status.ok()) buffers[i] = outcomes_[i].status.to_string();
    }
    return buffers;
  }

  const std::thread::id thread_ = std::this_thread::get_id();
  std::shared_ptr<testing::MemFileSystem> disk_ = std::make_shared<testing::MemFileSystem>();
  std::shared_ptr<testing::FaultyFileSystem> faulty_ =
      std::make_shared<testing::FaultyFileSystem>(disk_);
  std::unique_ptr<ReadEngine> engine_ = make_pread_engine(faulty_);
  std::map<size_t, ReadOutcome> outcomes_;
};

TEST_F(PreadEngineTest, ReadsWholeFilesOfEverySize) {
  for (const size_t size : {0, 1, 4095, 4096, 4097, 5'000'000, 8'388'608, 9'000'001}) {
    disk_->write_all("f", pattern(size));
    EXPECT_THAT(read("f", round_up(size + 1, kIoAlign)), is_pattern_of(size));
    EXPECT_EQ(outcomes_[0].stat.size, size);
    EXPECT_THAT(read("f", size), is_pattern_of(size));
  }
}

TEST_F(PreadEngineTest, ReadsInPiecesOfAtMostFourMiB) {
  disk_->write_all("f", pattern(9'000'001));
  read("f", 10'000'000);
  for (const testing::Operation& call : faulty_->calls()) {
    if (call.op == Op::kRead) {
      EXPECT_LE(call.bytes, 4u << 20);
    }
  }
  EXPECT_EQ(faulty_->count(Op::kRead), 3u);
}

TEST_F(PreadEngineTest, SmallBufferGetsTheBeginning) {
  disk_->write_all("f", pattern(10'000));
  EXPECT_THAT(read("f", 5000), is_pattern_of(5000));
  EXPECT_EQ(outcomes_[0].stat.size, 10'000u);
  EXPECT_EQ(read("f", 0), "");
}

TEST_F(PreadEngineTest, EachRequestOfABatchHasItsOwnOutcome) {
  disk_->write_all("a", "one");
  disk_->write_all("c", "three");
  faulty_->plan().fail(Op::kRead, "c", EIO);
  read_all({"a", "b", "c", "a"}, 100);
  EXPECT_EQ(outcomes_[0].bytes_read, 3u);
  EXPECT_THAT(outcomes_[1].status, fails_with(Code::kNotFound, ENOENT));
  EXPECT_THAT(outcomes_[2].status, fails_with(Code::kUnavailable, EIO));
  EXPECT_THAT(outcomes_[3].status, is_ok());
  engine_->read_files({}, [](size_t, ReadOutcome) { FAIL(); });
}

TEST_F(PreadEngineTest, EveryFailingCallIsReported) {
  disk_->write_all("f", pattern(100));
  for (const Op op : {Op::kOpenRead, Op::kStatOpen, Op::kRead}) {
    for (const int error : {EIO, EACCES, ESTALE, EMFILE}) {
      faulty_->plan().fail(op, "f", error);
      read("f", 4096);
      EXPECT_THAT(outcomes_[0].status, fails_with(Code::kUnavailable, error));
      EXPECT_EQ(outcomes_[0].bytes_read, 0u);
    }
  }
  EXPECT_THAT(read("f", 4096), is_pattern_of(100));
}

TEST_F(PreadEngineTest, FailureInALaterPieceKeepsTheCountOfTheFirst) {
  disk_->write_all("f", pattern(6 << 20));
  faulty_->plan().fail(Op::kRead, "f", EIO, 2);
  read("f", 8 << 20);
  EXPECT_THAT(outcomes_[0].status, fails_with(Code::kUnavailable, EIO));
  EXPECT_EQ(outcomes_[0].bytes_read, 4u << 20);
}

TEST_F(PreadEngineTest, ShortReadsAreContinued) {
  disk_->write_all("f", pattern(50'000));
  faulty_->plan().short_reads("f", 777);
  EXPECT_THAT(read("f", 65'536), is_pattern_of(50'000));
}

TEST_F(PreadEngineTest, FileThatShrinksGivesNoStaleBytes) {
  disk_->write_all("f", pattern(50'000));
  for (const uint64_t size : {0, 1, 4096, 49'999}) {
    faulty_->plan().clear();
    faulty_->plan().end_reads_at("f", size);
    EXPECT_THAT(read("f", 65'536), is_pattern_of(size));
    EXPECT_THAT(outcomes_[0].status, is_ok());
    EXPECT_EQ(outcomes_[0].stat.size, 50'000u);
  }
}

TEST_F(PreadEngineTest, FileThatGrowsGivesNoMoreThanItsStat) {
  disk_->write_all("f", pattern(5000));
  testing::BlockedCalls blocked = faulty_->plan().block(Op::kRead, "f");
  std::thread writer([&] {
    EXPECT_TRUE(blocked.wait_until_blocked());
    disk_->truncate("f", 6000);
    blocked.release();
  });
  EXPECT_THAT(read("f", 8192), is_pattern_of(5000));
  writer.join();
}

TEST_F(PreadEngineTest, ReadsFromTheMachinesDisk) {
  const testing::TempDir dir;
  const auto opened = open_posix_file_system(dir.path());
  ASSERT_THAT(opened, is_ok());
  const auto pool = BufferPool::create({.limit_bytes = 64 << 20});
  for (const size_t size : {1, 4096, 100'000, 9'000'001}) {
    const std::string name = std::to_string(size);
    {
      const auto file = (*opened)->create_exclusive(name);
      ASSERT_THAT(file, is_ok());
      ASSERT_THAT((*file)->append(as_byte_span(pattern(size))), is_ok());
    }
    Result<PooledBuffer> buffer = pool->allocate(size);
    ASSERT_THAT(buffer, is_ok());
    const ReadRequest request = {name, buffer->span()};
    make_pread_engine(*opened)->read_files({&request, 1}, [&](size_t, ReadOutcome outcome) {
      ASSERT_THAT(outcome.status, is_ok());
      EXPECT_THAT(as_text(buffer->span().first(outcome.bytes_read)), is_pattern_of(size));
    });
  }
}

}  // namespace
}  // namespace kvkeep
