#include "disk/disk_space.h"

#include <algorithm>

#include "kvkeep/size_string.h"

namespace kvkeep {
namespace {

constexpr double kUsableShare = 0.99;
constexpr uint64_t kMinFreeShare = 20;
constexpr uint64_t kMinFreeAtMost = 5ull << 30;
constexpr double kPressureShare = 0.10;
constexpr Duration kBelieveAfter = std::chrono::seconds(1);
constexpr Duration kFailureWarnInterval = std::chrono::seconds(60);

uint64_t minus(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

bool is_due(std::optional<Duration>& last, Duration now, Duration interval) {
  if (last && now - *last < interval) return false;
  last = now;
  return true;
}

}  // namespace

uint64_t effective_limit(uint64_t configured, uint64_t on_disk, uint64_t free, uint64_t min_free) {
  const double share = (static_cast<double>(on_disk) + static_cast<double>(free)) * kUsableShare;
  const bool bounded = share < static_cast<double>(configured);
  const uint64_t by_share = bounded ? static_cast<uint64_t>(share) : configured;
  const uint64_t total = free > UINT64_MAX - on_disk ? UINT64_MAX : on_disk + free;
  return std::min(by_share, minus(total, min_free));
}

DiskSpace::DiskSpace(FileSystem& file_system, SpaceAccount& account, std::shared_ptr<Clock> clock,
                     std::shared_ptr<Logger> logger, const Settings& settings)
    : file_system_(file_system),
      account_(account),
      clock_(std::move(clock)),
      logger_(std::move(logger)),
      settings_(settings),
      configured_(settings.configured) {}

void DiskSpace::refresh() {
  if (!begin_reading()) return;
  // Before the question, so that what is written meanwhile makes the sum too small, not too large.
  const uint64_t on_disk = account_.used();
  const Result<SpaceInfo> space = file_system_.space();
  Warnings warnings;
  {
    MutexLock lock(mu_);
    take(space, on_disk, warnings);
  }
  for (const std::string& text : {warnings.failure, warnings.pressure}) {
    if (!text.empty()) logger_->log(LogLevel::kWarning, text);
  }
}

void DiskSpace::drop() {
  MutexLock lock(mu_);
  next_reading_.reset();
}

bool DiskSpace::begin_reading() {
  MutexLock lock(mu_);
  if (reading_ || (next_reading_ && clock_->mono() < *next_reading_)) return false;
  reading_ = true;
  return true;
}

void DiskSpace::take(const Result<SpaceInfo>& space, uint64_t on_disk, Warnings& warnings) {
  const Duration now = clock_->mono();
  reading_ = false;
  next_reading_ = now + settings_.snapshot_ttl;
  space_.reset();
  if (space.ok()) {
    space_ = *space;
    on_disk_then_ = on_disk;
    warnings.pressure = pressure_warning();
  } else {
    warnings.failure = failure_warning(space.status());
  }
  believe(on_disk);
  put_in_force();
}

// A reading may be wrong for a moment: another program's file that comes and goes, a file system
// that is being mounted.
void DiskSpace::believe(uint64_t on_disk) {
  const Duration now = clock_->mono();
  const bool low = account_.limit_for(on_disk) > std::min(configured_, effective_locked());
  if (!low || effective_locked() >= configured_) {
    low_since_.reset();
    believed_ = true;
    return;
  }
  if (!low_since_) low_since_ = now;
  believed_ = now - *low_since_ >= kBelieveAfter;
  if (!believed_) next_reading_ = *low_since_ + kBelieveAfter;
}

void DiskSpace::put_in_force() {
  const uint64_t held = account_.limit_for(account_.used());
  account_.set_limit(std::min(configured_, std::max(effective_locked(), held)));
}

uint64_t DiskSpace::effective_locked() const {
  if (!space_) return configured_;
  return effective_limit(configured_, on_disk_then_, space_->free, min_free_locked());
}

uint64_t DiskSpace::min_free_locked() const {
  if (settings_.min_free_bytes) return *settings_.min_free_bytes;
  return space_ ? std::min(space_->capacity / kMinFreeShare, kMinFreeAtMost) : 0;
}

std::string DiskSpace::failure_warning(const Status& why) {
  if (!is_due(warned_failure_, clock_->mono(), kFailureWarnInterval)) return {};
  return "Failed to check disk usage; the configured limit of " + format_bytes(configured_) +
         " holds: " + why.message();
}

std::string DiskSpace::pressure_warning() {
  const uint64_t limit = effective_locked();
  if (static_cast<double>(limit) >= static_cast<double>(configured_) * kPressureShare) return {};
  if (!is_due(warned_pressure_, clock_->mono(), settings_.pressure_warn_interval)) return {};
  return "disk pressure: only " + format_bytes(limit) + " of the configured " +
         format_bytes(configured_) +
         " can be used (disk nearly full: " + format_bytes(space_ ? space_->free : 0) + " free, " +
         format_bytes(min_free_locked()) +
         " are left to others; make room, or take a directory on another disk)";
}

uint64_t DiskSpace::effective() const {
  MutexLock lock(mu_);
  return effective_locked();
}

uint64_t DiskSpace::configured() const {
  MutexLock lock(mu_);
  return configured_;
}

void DiskSpace::set_configured(uint64_t bytes) {
  MutexLock lock(mu_);
  configured_ = bytes;
  put_in_force();
}

uint64_t DiskSpace::free_bytes() const {
  const uint64_t on_disk = account_.used();
  MutexLock lock(mu_);
  return space_ ? minus(on_disk_then_ + space_->free, on_disk) : 0;
}

uint64_t DiskSpace::min_free_bytes() const {
  MutexLock lock(mu_);
  return min_free_locked();
}

bool DiskSpace::out_of_inodes() const {
  MutexLock lock(mu_);
  return space_ && space_->inodes > 0 && space_->free_inodes == 0;
}

uint64_t DiskSpace::surplus() const {
  MutexLock lock(mu_);
  if (!believed_) return 0;
  return minus(account_.limit_for(account_.used()), effective_locked());
}

void DiskSpace::follow() {
  MutexLock lock(mu_);
  put_in_force();
}

}  // namespace kvkeep
