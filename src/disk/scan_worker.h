// ScanWorker looks at the names of one store, directory by directory, and adds up what it saw.
//
// Threads: one at a time; several workers may look at different directories of one store.
#pragma once

#include <functional>
#include <string_view>

#include "disk/header_reader.h"
#include "disk/scan.h"
#include "disk/store_layout.h"
#include "io/file_system.h"
#include "kvkeep/status.h"

namespace kvkeep {

class ScanWorker {
 public:
  // All three must outlive the worker.
  ScanWorker(FileSystem& file_system, const ScanSettings& settings,
             const std::function<void(FoundBlock)>& found);

  // Each fails only if a directory cannot be listed. A missing directory is an empty one.
  Status look_at_root();
  Status look_at_service_dirs();
  Status look_at_subdir(std::string_view subdir);

  const ScanReport& report() const { return report_; }

 private:
  template <typename Visit>
  Status each_entry(std::string_view dir, const Visit& visit);
  void count_dir(std::string_view path);
  void count_foreign(const FileStat& stat);
  void count_quarantined(const FileStat& stat);
  Status look_at_service_dir(std::string_view dir);
  void look_at(const StoreName& name, std::string_view path, const FileStat& stat);
  void remove_temp(std::string_view path, const FileStat& stat);
  void report_block(const BlockHash& hash, std::string_view path, const FileStat& stat);

  FileSystem& file_system_;
  const ScanSettings& settings_;
  const std::function<void(FoundBlock)>& found_;
  HeaderReader reader_;
  ScanReport report_;
};

}  // namespace kvkeep
