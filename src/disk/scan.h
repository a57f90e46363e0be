// scan_store() looks at every name in a store once: blocks, leftovers, service files and foreign
// files.
//
// Each block file costs a stat and the read of its header, no tensor data. Nothing but leftover
// temporary files is changed, and with ScanSettings::read_only not even those. Links and
// directories that carry a block's name are foreign.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "codec/image.h"
#include "io/file_system.h"
#include "kvkeep/environment.h"
#include "kvkeep/reason.h"
#include "kvkeep/status.h"

namespace kvkeep {

// A block file found by scan(). `header` is absent where it could not be read; `why` then says
// which reason a lookup has.
struct FoundBlock {
  BlockHash hash;  // Of the name.
  uint64_t file_bytes = 0;
  uint64_t allocated = 0;
  double mtime = 0;
  std::optional<BlockHeader> header;
  // kUnreadable: the read failed or the header makes no sense. kVersion. kDamaged: the file says it
  // is another block. kNoMemory.
  MissReason why = MissReason::kUnreadable;
  bool listed_only = false;  // Its header was not wanted.
};

struct ScanReport {
  uint64_t overhead_bytes = 0;    // Allocated: directories, .kvkeep/, leftovers that must stay.
  uint64_t quarantine_bytes = 0;  // Allocated; not in overhead_bytes.
  uint64_t quarantine_files = 0;
  uint64_t foreign_files = 0;  // Entries in the root and its sub-directories that are not ours.
  uint64_t foreign_bytes = 0;  // Allocated.
  uint64_t temp_files_removed = 0;
  uint64_t temp_files = 0;        // With read_only: temporary files of anybody.
  uint64_t temp_bytes = 0;        // Allocated; not in overhead_bytes.
  uint64_t unreadable_files = 0;  // Block files without a header.
};

struct ScanSettings {
  std::string own_nonce;  // Temporary files with another one belong to ended processes.
  double now = 0;         // Seconds since the Unix epoch.
  // Up to `helpers` tasks of the executor share the work with the calling thread, which waits for
  // no task that has not started.
  Executor* executor = nullptr;
  unsigned helpers = 0;
  // Whether the header of a block file is to be read. Null: always.
  std::function<bool(const BlockHash&, const FileStat&)> wants_header{};
  bool read_only = false;  // Temporary files stay, and are counted as such.
};

// With helpers, `found` is called from several threads at once. A directory that cannot be listed
// ends the scan with its error, because the bytes in it would go uncounted; a file that cannot be
// read does not.
Result<ScanReport> scan_store(FileSystem& file_system, const ScanSettings& settings,
                              const std::function<void(FoundBlock)>& found);

}  // namespace kvkeep
