#include "disk/space_account.h"

#include <algorithm>
#include <limits>

namespace kvkeep {
namespace {

constexpr uint64_t kHeadroomShare = 512;  // RUL-53.

// Counts come from outside (files found, sizes that a file system reports), so sums and differences
// stop at the ends of the range instead of wrapping round.
uint64_t plus(uint64_t a, uint64_t b) {
  return a > std::numeric_limits<uint64_t>::max() - b ? std::numeric_limits<uint64_t>::max()
                                                      : a + b;
}
uint64_t minus(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

}  // namespace

uint64_t SpaceAccount::headroom_locked() const {
  return least_headroom_ == 0 ? 0 : std::max(least_headroom_, limit_ / kHeadroomShare);
}

uint64_t SpaceAccount::usable_locked() const { return minus(limit_, headroom_locked()); }

uint64_t SpaceAccount::used_locked() const { return plus(files_, overhead_); }

bool SpaceAccount::charge_locked(uint64_t bytes) {
  if (plus(used_locked(), bytes) > usable_locked()) return false;
  files_ += bytes;
  return true;
}

uint64_t SpaceAccount::largest_block() const {
  MutexLock lock(mu_);
  return minus(usable_locked(), overhead_);
}

uint64_t SpaceAccount::shortfall(uint64_t bytes) const {
  MutexLock lock(mu_);
  return minus(plus(plus(used_locked(), reserved_), bytes), usable_locked());
}

void SpaceAccount::reserve(uint64_t bytes) {
  MutexLock lock(mu_);
  reserved_ = plus(reserved_, bytes);
}

void SpaceAccount::unreserve(uint64_t bytes) {
  MutexLock lock(mu_);
  reserved_ = minus(reserved_, bytes);
}

bool SpaceAccount::begin_write(uint64_t bytes) {
  MutexLock lock(mu_);
  if (!charge_locked(bytes)) return false;
  reserved_ = minus(reserved_, bytes);
  return true;
}

bool SpaceAccount::charge_more(uint64_t bytes) {
  MutexLock lock(mu_);
  return charge_locked(bytes);
}

void SpaceAccount::charge_found(uint64_t bytes) {
  MutexLock lock(mu_);
  files_ = plus(files_, bytes);
}

void SpaceAccount::release(uint64_t bytes) {
  MutexLock lock(mu_);
  files_ = minus(files_, bytes);
}

void SpaceAccount::set_overhead(uint64_t bytes) {
  MutexLock lock(mu_);
  overhead_ = bytes;
}

void SpaceAccount::replace_overhead(uint64_t before, uint64_t after) {
  MutexLock lock(mu_);
  overhead_ = plus(minus(overhead_, before), after);
}

void SpaceAccount::set_limit(uint64_t bytes) {
  MutexLock lock(mu_);
  limit_ = bytes;
}

uint64_t SpaceAccount::limit() const {
  MutexLock lock(mu_);
  return limit_;
}

uint64_t SpaceAccount::usable() const {
  MutexLock lock(mu_);
  return usable_locked();
}

uint64_t SpaceAccount::headroom() const {
  MutexLock lock(mu_);
  return headroom_locked();
}

uint64_t SpaceAccount::limit_for(uint64_t used) const {
  if (least_headroom_ == 0) return used;
  return plus(used, std::max(least_headroom_, used / (kHeadroomShare - 1) + 1));
}

uint64_t SpaceAccount::used() const {
  MutexLock lock(mu_);
  return used_locked();
}

uint64_t SpaceAccount::tracked() const {
  MutexLock lock(mu_);
  return plus(used_locked(), reserved_);
}

}  // namespace kvkeep
