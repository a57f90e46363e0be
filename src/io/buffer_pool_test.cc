#include "io/buffer_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "io/file_system.h"
#include "io/mapped_memory.h"
#include "io/size_class.h"
#include "testing/exact_buffer_pool.h"
#include "testing/proves.h"
#include "testing/status_matchers.h"

namespace kvkeep {
namespace {

using testing::fails_with;
using testing::is_ok;

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;

std::shared_ptr<BufferPool> pool_of(uint64_t limit, uint64_t keep = 256 * kMiB) {
  return BufferPool::create({.limit_bytes = limit, .region_bytes = 8 * kMiB, .keep_bytes = keep});
}

PooledBuffer take(BufferPool& pool, size_t bytes) {
  Result<PooledBuffer> buffer = pool.allocate(bytes);
  EXPECT_THAT(buffer, is_ok());
  return buffer.ok() ? *std::move(buffer) : PooledBuffer();
}

// Sizes of blocks as they occur, and each class border with its neighbours.
std::vector<uint64_t> interesting_sizes() {
  std::vector<uint64_t> sizes = {1, 100, 4095};
  for (uint64_t power = 4096; power <= 1024 * kMiB; power *= 2) {
    for (uint64_t quarters = 4; quarters < 8; ++quarters) {
      const uint64_t border = power / 4 * quarters;
      sizes.insert(sizes.end(), {border - 1, border, border + 1});
    }
  }
  return sizes;
}

TEST(SizeClass, HoldsTheRequestInWholePagesAndIsItsOwnClass) {
  for (const uint64_t bytes : interesting_sizes()) {
    const uint64_t size = size_class_of(bytes);
    EXPECT_GE(size, bytes);
    EXPECT_EQ(size % kIoAlign, 0u) << bytes;
    EXPECT_EQ(size_class_of(size), size) << bytes;
    EXPECT_LE(size_class_of(bytes), size_class_of(bytes + 1)) << bytes;
  }
  EXPECT_EQ(size_class_of(0), kIoAlign);
}

TEST(SizeClass, WastesAtMostATwentiethOfAHundredAboveSixteenKiB) {
  testing::proves("RUL-55");
  for (const uint64_t bytes : interesting_sizes()) {
    if (bytes <= 16 * kKiB) continue;
    const uint64_t size = size_class_of(bytes);
    EXPECT_LE((size - bytes) * 5, size) << bytes;
  }
}

TEST(SizeClass, RegionsAreUsedToEightyPercentOrHoldOneBuffer) {
  for (const uint64_t bytes : interesting_sizes()) {
    const uint64_t size = size_class_of(bytes);
    for (const uint64_t limit : {kMiB, 512 * kMiB, 64 * 1024 * kMiB}) {
      const uint64_t region = region_bytes_for(size, limit, 64 * kMiB);
      EXPECT_EQ(region % kHugePage, 0u);
      EXPECT_GE(region, size);
      EXPECT_TRUE(region_suits(region, size) || region - size < kHugePage) << size;
      if (region / size > 1) {
        EXPECT_LE(region, 64 * kMiB);
      }
    }
  }
}

TEST(BufferPool, BuffersAreAlignedAndApart) {
  const auto pool = pool_of(64 * kMiB);
  std::vector<PooledBuffer> buffers;
  for (const size_t bytes : {1, 4096, 5000, 100'000, 100'000, 2'000'000, 9'000'000}) {
    buffers.push_back(take(*pool, bytes));
    EXPECT_GE(buffers.back().capacity(), bytes);
    EXPECT_EQ(buffers.back().capacity() % kIoAlign, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffers.back().data()) % kIoAlign, 0u);
    std::memset(buffers.back().data(), static_cast<int>(buffers.size()), buffers.back().capacity());
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    const auto mark = static_cast<std::byte>(i + 1);
    const auto span = buffers[i].span();
    EXPECT_TRUE(std::all_of(span.begin(), span.end(), [&](std::byte b) { return b == mark; }));
  }
}

TEST(BufferPool, RegionsStartAtHugePages) {
  const auto pool = pool_of(64 * kMiB);
  const PooledBuffer first = take(*pool, 100'000);
  const PooledBuffer own = take(*pool, 9 * kMiB);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first.data()) % kHugePage, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(own.data()) % kHugePage, 0u);
}

TEST(BufferPool, LimitCountsRoundedBytes) {
  testing::proves("RUL-10");
  const auto pool = pool_of(100 * kKiB);
  EXPECT_EQ(pool->rounded_bytes(50'000), 56 * kKiB);
  const PooledBuffer first = take(*pool, 50'000);
  EXPECT_EQ(pool->in_use_bytes(), 56 * kKiB);
  EXPECT_THAT(pool->allocate(50'000), fails_with(Code::kResourceExhausted, 0));
  EXPECT_EQ(pool->in_use_bytes(), 56 * kKiB);
  const PooledBuffer second = take(*pool, 40 * kKiB);
  EXPECT_EQ(pool->in_use_bytes(), 96 * kKiB);
}

TEST(BufferPool, ExactlyTheLimitFits) {
  const auto pool = pool_of(kMiB);
  { const PooledBuffer all = take(*pool, kMiB); }
  const PooledBuffer again = take(*pool, kMiB);
  EXPECT_THAT(pool->allocate(1), fails_with(Code::kResourceExhausted, 0));
}

TEST(BufferPool, ImpossibleSizesAreRefused) {
  const auto pool = pool_of(UINT64_MAX);
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX / 2, size_t{1} << 62}) {
    EXPECT_EQ(pool->allocate(bytes).status().code(), Code::kResourceExhausted);
  }
  EXPECT_EQ(pool->in_use_bytes(), 0u);
}

TEST(BufferPool, RefusalByTheSystemLeavesTheAccountAlone) {
  const auto pool = pool_of(UINT64_MAX);
  EXPECT_THAT(pool->allocate(size_t{1} << 46), fails_with(Code::kResourceExhausted, ENOMEM));
  EXPECT_EQ(pool->in_use_bytes(), 0u);
  EXPECT_EQ(pool->mapped_bytes(), 0u);
}

TEST(BufferPool, FreedBuffersAreReusedWithoutNewMappings) {
  const auto pool = pool_of(64 * kMiB);
  const std::byte* before = take(*pool, 300'000).data();
  const uint64_t mapped = pool->mapped_bytes();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(take(*pool, 300'000 - i).data(), before);
  EXPECT_EQ(pool->mapped_bytes(), mapped);
  EXPECT_EQ(pool->in_use_bytes(), 0u);
}

TEST(BufferPool, EmptyRegionsServeOtherClasses) {
  const auto pool = pool_of(64 * kMiB);
  take(*pool, 100'000);
  const uint64_t mapped = pool->mapped_bytes();
  for (const size_t bytes : {4096, 8192, 20'000, 65'536, 262'144, 2'097'152}) {
    take(*pool, bytes);
    EXPECT_EQ(pool->mapped_bytes(), mapped) << bytes;
  }
}

TEST(BufferPool, EmptyRegionsBeyondWhatIsKeptAreUnmapped) {
  const auto pool = pool_of(256 * kMiB, 4 * kMiB);
  {
    std::vector<PooledBuffer> buffers;
    for (int i = 0; i < 10; ++i) buffers.push_back(take(*pool, 10 * kMiB));
    EXPECT_EQ(pool->mapped_bytes(), 100 * kMiB);
    take(*pool, kMiB);
  }
  EXPECT_LE(pool->mapped_bytes(), 4 * kMiB);
  EXPECT_GT(pool->mapped_bytes(), 0u);
}

TEST(BufferPool, EmptyRegionsMakeWayAtTheLimit) {
  const auto pool = pool_of(32 * kMiB);
  { const PooledBuffer large = take(*pool, 28 * kMiB); }
  EXPECT_EQ(pool->mapped_bytes(), 28 * kMiB);
  const PooledBuffer other = take(*pool, 20 * kMiB);
  EXPECT_EQ(pool->mapped_bytes(), 20 * kMiB);
}

TEST(BufferPool, BufferOutlivesThePoolsOwner) {
  auto pool = pool_of(kMiB);
  const PooledBuffer buffer = take(*pool, 1000);
  pool.reset();
  std::memset(buffer.data(), 1, buffer.capacity());
}

TEST(BufferPool, MovedBufferReturnsOnce) {
  const auto pool = pool_of(kMiB);
  PooledBuffer a = take(*pool, 1000);
  PooledBuffer b = take(*pool, 1000);
  const std::byte* data = a.data();
  b = std::move(a);
  EXPECT_EQ(b.data(), data);
  EXPECT_EQ(pool->in_use_bytes(), kIoAlign);
  PooledBuffer& same = b;
  b = std::move(same);
  EXPECT_EQ(b.data(), data);
  b = PooledBuffer();
  EXPECT_EQ(pool->in_use_bytes(), 0u);
}

// Random sizes, lives and threads: buffers never overlap, and everything comes back.
TEST(BufferPool, ManyThreadsShareIt) {
  const auto pool = BufferPool::create(
      {.limit_bytes = 48 * kMiB, .region_bytes = 4 * kMiB, .keep_bytes = 8 * kMiB});
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::pair<PooledBuffer, std::byte>> mine;
    for (int i = 0; i < 3000; ++i) {
      const size_t bytes = size_t{1} << (10 + random() % 11);
      Result<PooledBuffer> buffer = pool->allocate(bytes + random() % bytes);
      if (buffer.ok()) {
        const auto mark = static_cast<std::byte>(seed * 16 + i % 16);
        buffer->data()[0] = mark;
        buffer->data()[buffer->capacity() - 1] = mark;
        mine.emplace_back(*std::move(buffer), mark);
      }
      if (mine.size() < 8 && buffer.ok()) continue;
      if (mine.empty()) continue;
      std::swap(mine[random() % mine.size()], mine.back());
      EXPECT_EQ(mine.back().first.data()[0], mine.back().second);
      EXPECT_EQ(mine.back().first.span().back(), mine.back().second);
      mine.pop_back();
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool->in_use_bytes(), 0u);
  EXPECT_LE(pool->mapped_bytes(), 8 * kMiB);
}

TEST(ExactBufferPool, CountsToTheByte) {
  testing::proves("RUL-10");
  const auto pool = testing::ExactBufferPool::create(1000);
  const PooledBuffer buffer = take(*pool, 999);
  EXPECT_EQ(buffer.capacity(), 999u);
  EXPECT_EQ(pool->in_use_bytes(), 999u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kIoAlign, 0u);
  EXPECT_THAT(pool->allocate(2), fails_with(Code::kResourceExhausted, 0));
  const PooledBuffer rest = take(*pool, 1);
}

}  // namespace
}  // namespace kvkeep
