#include "disk/scan.h"

#include <memory>
#include <optional>

#include "base/mutex.h"
#include "disk/scan_worker.h"
#include "disk/store_layout.h"

namespace kvkeep {
namespace {

void add(ScanReport& total, const ScanReport& part) {
  total.overhead_bytes += part.overhead_bytes;
  total.quarantine_bytes += part.quarantine_bytes;
  total.quarantine_files += part.quarantine_files;
  total.temp_files += part.temp_files;
  total.temp_bytes += part.temp_bytes;
  total.foreign_files += part.foreign_files;
  total.foreign_bytes += part.foreign_bytes;
  total.temp_files_removed += part.temp_files_removed;
  total.unreadable_files += part.unreadable_files;
}

// Hands sub-directories out to whoever asks. The scanning thread takes part, so helpers that start
// late or never cost nothing: they find no work left and touch only this object, which they share.
class SharedScan {
 public:
  std::optional<std::string_view> next_subdir() {
    MutexLock lock(mu_);
    if (next_ == kSubdirs.size() || !error_.ok()) return std::nullopt;
    return kSubdirs.substr(next_++, 1);
  }

  // False if there is nothing to do any more; else leave() must follow.
  bool join() {
    MutexLock lock(mu_);
    if (next_ == kSubdirs.size()) return false;
    ++helpers_;
    return true;
  }

  void leave(const Status& outcome, const ScanReport& report) {
    MutexLock lock(mu_);
    merge(outcome, report);
    if (--helpers_ == 0) idle_.notify_all();
  }

  Result<ScanReport> finish(const Status& outcome, const ScanReport& report) {
    MutexLock lock(mu_);
    merge(outcome, report);
    next_ = kSubdirs.size();
    while (helpers_ > 0) idle_.wait(mu_);
    if (!error_.ok()) return error_;
    return total_;
  }

 private:
  void merge(const Status& outcome, const ScanReport& report) KVKEEP_REQUIRES(mu_) {
    add(total_, report);
    if (error_.ok()) error_ = outcome;
  }

  Mutex mu_;
  CondVar idle_;
  size_t next_ KVKEEP_GUARDED_BY(mu_) = 0;
  unsigned helpers_ KVKEEP_GUARDED_BY(mu_) = 0;
  ScanReport total_ KVKEEP_GUARDED_BY(mu_);
  Status error_ KVKEEP_GUARDED_BY(mu_);
};

Status look_at_subdirs(ScanWorker& worker, SharedScan& shared) {
  while (const std::optional<std::string_view> subdir = shared.next_subdir()) {
    KVKEEP_TRY(worker.look_at_subdir(*subdir));
  }
  return {};
}

Status look_at_all(ScanWorker& worker, SharedScan& shared) {
  KVKEEP_TRY(worker.look_at_root());
  KVKEEP_TRY(worker.look_at_service_dirs());
  return look_at_subdirs(worker, shared);
}

}  // namespace

Result<ScanReport> scan_store(FileSystem& file_system, const ScanSettings& settings,
                              const std::function<void(FoundBlock)>& found) {
  const auto shared = std::make_shared<SharedScan>();
  for (unsigned i = 0; settings.executor != nullptr && i < settings.helpers; ++i) {
    settings.executor->post([shared, &file_system, &settings, &found] {
      if (!shared->join()) return;
      ScanWorker worker(file_system, settings, found);
      const Status outcome = look_at_subdirs(worker, *shared);
      shared->leave(outcome, worker.report());
    });
  }
  ScanWorker worker(file_system, settings, found);
  const Status outcome = look_at_all(worker, *shared);
  return shared->finish(outcome, worker.report());
}

}  // namespace kvkeep
