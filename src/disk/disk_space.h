// DiskSpace watches how much of the disk is free, and from that how much of it a store may use.
//
// A store's effective limit is what was configured, but at most what it holds plus what is free,
// less a floor that stays free for others. Holdings grow by what free space shrinks, so the limit
// that a reading gives stays right while blocks are written and removed; only others change it, and
// the next reading sees that.
//
// A limit that would cost blocks is not believed at once: until a second reading, at least a second
// later, the store only does not grow. docs/contract.md: C.16, RUL-07, RUL-08.
//
// Threads: any thread. mu_ is never held while the disk is asked or a message logged; only the
//          account's lock is taken under it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "disk/space_account.h"
#include "io/file_system.h"
#include "kvkeep/environment.h"

namespace kvkeep {

// min(configured, 99 % of on_disk + free, on_disk + free - min_free). All in bytes.
uint64_t effective_limit(uint64_t configured, uint64_t on_disk, uint64_t free, uint64_t min_free);

class DiskSpace {
 public:
  struct Settings {
    uint64_t configured = 0;                 // Bytes.
    std::optional<uint64_t> min_free_bytes;  // Absent: min(5 % of the file system, 5 GiB).
    Duration snapshot_ttl{};
    Duration pressure_warn_interval{};
  };

  // Both must outlive it. No reading yet: the limit is the configured one.
  DiskSpace(FileSystem& file_system, SpaceAccount& account, std::shared_ptr<Clock> clock,
            std::shared_ptr<Logger> logger, const Settings& settings);

  // Asks the disk, if the last answer is older than snapshot_ttl, and brings the limit in force up
  // to date. Only one thread asks; others go on with what is known. May block on the disk.
  void refresh() KVKEEP_EXCLUDES(mu_);
  // What is known is wrong: the next refresh() asks.
  void drop() KVKEEP_EXCLUDES(mu_);

  // By the last answer; the configured limit if there was none.
  uint64_t effective() const KVKEEP_EXCLUDES(mu_);
  uint64_t configured() const KVKEEP_EXCLUDES(mu_);
  // In force at once.
  void set_configured(uint64_t bytes) KVKEEP_EXCLUDES(mu_);
  // Free bytes now: those of the last answer, less what the store took since. 0 if there was none.
  uint64_t free_bytes() const KVKEEP_EXCLUDES(mu_);
  uint64_t min_free_bytes() const KVKEEP_EXCLUDES(mu_);
  // True where the file system counts inodes and none was free at the last answer.
  bool out_of_inodes() const KVKEEP_EXCLUDES(mu_);

  // How far the store is over a limit that is believed, but not in force yet: it comes into force
  // step by step as blocks leave. 0: nothing to do.
  uint64_t surplus() const KVKEEP_EXCLUDES(mu_);
  // Blocks have left: the limit in force follows.
  void follow() KVKEEP_EXCLUDES(mu_);

 private:
  struct Warnings {
    std::string failure, pressure;
  };

  bool begin_reading() KVKEEP_EXCLUDES(mu_);
  uint64_t effective_locked() const KVKEEP_REQUIRES(mu_);
  uint64_t min_free_locked() const KVKEEP_REQUIRES(mu_);
  void take(const Result<SpaceInfo>& space, uint64_t on_disk, Warnings& warnings)
      KVKEEP_REQUIRES(mu_);
  void believe(uint64_t on_disk) KVKEEP_REQUIRES(mu_);
  void put_in_force() KVKEEP_REQUIRES(mu_);
  std::string failure_warning(const Status& why) KVKEEP_REQUIRES(mu_);
  std::string pressure_warning() KVKEEP_REQUIRES(mu_);

  FileSystem& file_system_;
  SpaceAccount& account_;
  const std::shared_ptr<Clock> clock_;
  const std::shared_ptr<Logger> logger_;
  const Settings settings_;
  mutable Mutex mu_;
  bool reading_ KVKEEP_GUARDED_BY(mu_) = false;
  std::optional<Duration> next_reading_ KVKEEP_GUARDED_BY(mu_);  // Absent: at once.
  uint64_t configured_ KVKEEP_GUARDED_BY(mu_);
  std::optional<SpaceInfo> space_ KVKEEP_GUARDED_BY(mu_);  // The last answer, if it was one.
  uint64_t on_disk_then_ KVKEEP_GUARDED_BY(mu_) = 0;
  std::optional<Duration> low_since_ KVKEEP_GUARDED_BY(mu_);  // A reading that would cost blocks.
  bool believed_ KVKEEP_GUARDED_BY(mu_) = true;
  std::optional<Duration> warned_failure_ KVKEEP_GUARDED_BY(mu_);
  std::optional<Duration> warned_pressure_ KVKEEP_GUARDED_BY(mu_);
};

}  // namespace kvkeep
