#include "io/buffer_pool.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/guarded.h"
#include "base/mutex.h"
#include "io/mapped_memory.h"
#include "io/pool_region.h"
#include "io/size_class.h"

namespace kvkeep {
namespace {

constexpr uint64_t kMaxBuffer = 1ull << 46;  // More than any address space has for one mapping.

using OwnedRegions = std::vector<std::unique_ptr<PoolRegion>>;

class RegionPool : public BufferPool {
 public:
  explicit RegionPool(const Options& options) : options_(options) {}

  Result<PooledBuffer> allocate(size_t bytes) override KVKEEP_EXCLUDES(mu_);
  uint64_t rounded_bytes(size_t bytes) const override { return size_class_of(bytes); }
  uint64_t in_use_bytes() const override KVKEEP_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return in_use_;
  }
  uint64_t mapped_bytes() const override KVKEEP_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return mapped_;
  }

 protected:
  void release(std::byte* data, size_t capacity, void* region) override KVKEEP_EXCLUDES(mu_);

 private:
  Status charge(size_t bytes) KVKEEP_EXCLUDES(mu_);
  void uncharge(uint64_t class_bytes) KVKEEP_EXCLUDES(mu_);
  Result<PooledBuffer> take_or_map(uint64_t class_bytes) KVKEEP_EXCLUDES(mu_);
  Result<PooledBuffer> allocate_from_new_region(uint64_t class_bytes) KVKEEP_EXCLUDES(mu_);

  // Null if a region must be mapped first.
  PoolRegion* find_region(uint64_t class_bytes) KVKEEP_REQUIRES(mu_);
  PoolRegion* reuse_empty_region(uint64_t class_bytes) KVKEEP_REQUIRES(mu_);
  PooledBuffer take_from(PoolRegion* region) KVKEEP_REQUIRES(mu_);
  // Takes the empty regions that have waited longest, until at most `keep` bytes of them are left.
  OwnedRegions drop_empty_regions(uint64_t keep) KVKEEP_REQUIRES(mu_);

  const Options options_;
  mutable Mutex mu_;
  uint64_t in_use_ KVKEEP_GUARDED_BY(mu_) = 0;
  uint64_t mapped_ KVKEEP_GUARDED_BY(mu_) = 0;
  std::unordered_map<PoolRegion*, std::unique_ptr<PoolRegion>> regions_ KVKEEP_GUARDED_BY(mu_);
  // Regions with used and free buffers, by class. The lowest address is filled first, so that the
  // others get a chance to become empty.
  std::map<uint64_t, std::set<PoolRegion*>> partial_ KVKEEP_GUARDED_BY(mu_);
  std::vector<PoolRegion*> empty_ KVKEEP_GUARDED_BY(mu_);  // The longest empty first.
  uint64_t empty_bytes_ KVKEEP_GUARDED_BY(mu_) = 0;
};

Result<PooledBuffer> RegionPool::allocate(size_t bytes) {
  KVKEEP_TRY(charge(bytes));
  const uint64_t class_bytes = size_class_of(bytes);
  Result<PooledBuffer> buffer = guarded(Asked::kOther, [&] { return take_or_map(class_bytes); });
  if (!buffer.ok()) uncharge(class_bytes);
  return buffer;
}

Result<PooledBuffer> RegionPool::take_or_map(uint64_t class_bytes) {
  {
    MutexLock lock(mu_);
    if (PoolRegion* region = find_region(class_bytes)) return take_from(region);
  }
  return allocate_from_new_region(class_bytes);
}

Status RegionPool::charge(size_t bytes) {
  MutexLock lock(mu_);
  const uint64_t left = options_.limit_bytes - in_use_;
  if (bytes <= std::min(left, kMaxBuffer) && size_class_of(bytes) <= left) {
    in_use_ += size_class_of(bytes);
    return {};
  }
  return Status(Code::kResourceExhausted,
                std::to_string(bytes) + " bytes of buffer do not fit: " + std::to_string(in_use_) +
                    " of " + std::to_string(options_.limit_bytes) + " are in use");
}

void RegionPool::uncharge(uint64_t class_bytes) {
  MutexLock lock(mu_);
  in_use_ -= class_bytes;
}

// Mapping takes milliseconds, so the lock is not held meanwhile; two threads may both add a region.
Result<PooledBuffer> RegionPool::allocate_from_new_region(uint64_t class_bytes) {
  const uint64_t bytes = region_bytes_for(class_bytes, options_.limit_bytes, options_.region_bytes);
  OwnedRegions dropped;
  {
    MutexLock lock(mu_);
    if (mapped_ + bytes > options_.limit_bytes) dropped = drop_empty_regions(0);
  }
  dropped.clear();
  KVKEEP_TRY_ASSIGN(MappedMemory memory, MappedMemory::map(bytes));
  auto region = std::make_unique<PoolRegion>(std::move(memory));
  region->cut(class_bytes);
  MutexLock lock(mu_);
  PoolRegion* added = region.get();
  // What needs memory first, so that no region is ever half listed.
  std::set<PoolRegion*> listed{added};
  std::set<PoolRegion*>& partial = partial_[class_bytes];
  regions_.emplace(added, std::move(region));
  mapped_ += bytes;
  partial.merge(listed);
  return take_from(added);
}

PoolRegion* RegionPool::find_region(uint64_t class_bytes) {
  const auto partial = partial_.find(class_bytes);
  if (partial != partial_.end() && !partial->second.empty()) return *partial->second.begin();
  std::set<PoolRegion*> listed{nullptr};
  std::set<PoolRegion*>& regions = partial_[class_bytes];
  PoolRegion* region = reuse_empty_region(class_bytes);
  if (region == nullptr) return nullptr;
  auto node = listed.extract(listed.begin());
  node.value() = region;
  regions.insert(std::move(node));
  return region;
}

// The last one that became empty is the most likely to be in the processor's caches.
PoolRegion* RegionPool::reuse_empty_region(uint64_t class_bytes) {
  for (size_t i = empty_.size(); i-- > 0;) {
    PoolRegion* region = empty_[i];
    if (!region_suits(region->size(), class_bytes)) continue;
    empty_.erase(empty_.begin() + static_cast<ptrdiff_t>(i));
    empty_bytes_ -= region->size();
    region->cut(class_bytes);
    return region;
  }
  return nullptr;
}

PooledBuffer RegionPool::take_from(PoolRegion* region) {
  std::byte* data = region->take();
  if (region->is_full()) {
    const auto partial = partial_.find(region->class_bytes());
    partial->second.erase(region);
    if (partial->second.empty()) partial_.erase(partial);
  }
  return make(data, region->class_bytes(), region);
}

void RegionPool::release(std::byte* data, size_t capacity, void* token) {
  auto* region = static_cast<PoolRegion*>(token);
  OwnedRegions dropped;  // Unmapped after the lock is given back.
  MutexLock lock(mu_);
  assert(in_use_ >= capacity && regions_.count(region) == 1);
  in_use_ -= capacity;
  region->give_back(data);
  auto& partial = partial_[region->class_bytes()];
  if (!region->is_empty()) {
    partial.insert(region);
    return;
  }
  partial.erase(region);
  if (partial.empty()) partial_.erase(region->class_bytes());
  // One that is too large to keep goes at once and pushes no other out.
  const bool keepable = region->size() <= options_.keep_bytes;
  empty_.insert(keepable ? empty_.end() : empty_.begin(), region);
  empty_bytes_ += region->size();
  dropped = drop_empty_regions(options_.keep_bytes);
}

OwnedRegions RegionPool::drop_empty_regions(uint64_t keep) {
  OwnedRegions dropped;
  while (empty_bytes_ > keep) {
    const auto region = regions_.find(empty_.front());
    empty_.erase(empty_.begin());
    empty_bytes_ -= region->first->size();
    mapped_ -= region->first->size();
    dropped.push_back(std::move(region->second));
    regions_.erase(region);
  }
  return dropped;
}

}  // namespace

std::shared_ptr<BufferPool> BufferPool::create(const Options& options) {
  return std::make_shared<RegionPool>(options);
}

PooledBuffer BufferPool::make(std::byte* data, size_t capacity, void* region) {
  PooledBuffer buffer;
  buffer.data_ = data;
  buffer.capacity_ = capacity;
  buffer.region_ = region;
  buffer.pool_ = shared_from_this();
  return buffer;
}

PooledBuffer::PooledBuffer(PooledBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      capacity_(std::exchange(other.capacity_, 0)),
      region_(std::exchange(other.region_, nullptr)),
      pool_(std::move(other.pool_)) {}

PooledBuffer& PooledBuffer::operator=(PooledBuffer&& other) noexcept {
  PooledBuffer taken(std::move(other));
  std::swap(data_, taken.data_);
  std::swap(capacity_, taken.capacity_);
  std::swap(region_, taken.region_);
  std::swap(pool_, taken.pool_);
  return *this;
}

PooledBuffer::~PooledBuffer() {
  if (pool_ == nullptr) return;
  // Without memory to list it, a region's free room stays unused until more of it comes back.
  guarded_task([&] { pool_->release(data_, capacity_, region_); });
}

}  // namespace kvkeep
