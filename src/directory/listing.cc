#include "directory/listing.h"

#include <algorithm>

#include "disk/namespaces.h"
#include "disk/recorded_limit.h"
#include "disk/store_layout.h"
#include "kvkeep/environment.h"

namespace kvkeep {
namespace {

BlockState state_of(const FoundBlock& found) {
  if (found.header) return BlockState::kOk;
  if (found.why == MissReason::kVersion) return BlockState::kVersion;
  return found.why == MissReason::kDamaged ? BlockState::kMismatch : BlockState::kUnreadable;
}

void add_scan(DirectoryTotals& totals, const ScanReport& report) {
  totals.overhead_bytes = report.overhead_bytes;
  totals.quarantine_files = report.quarantine_files;
  totals.quarantine_bytes = report.quarantine_bytes;
  totals.temp_files = report.temp_files;
  totals.temp_bytes = report.temp_bytes;
  totals.foreign_files = report.foreign_files;
  totals.foreign_bytes = report.foreign_bytes;
}

}  // namespace

NamespaceNames NamespaceNames::read(FileSystem& file_system) {
  NamespaceNames names;
  Result<Namespaces> found = read_namespaces(file_system);
  if (!found.ok()) return names;
  for (auto& [digest, entry] : *found) {
    names.all_[digest] = std::make_shared<const NamespaceInfo>(
        NamespaceInfo{digest, std::move(entry.model_names), std::move(entry.fields),
                      entry.recorded_at, entry.is_root});
  }
  return names;
}

std::shared_ptr<const NamespaceInfo> NamespaceNames::find(
    const std::optional<std::string>& digest) const {
  if (!digest) return nullptr;
  const auto at = all_.find(*digest);
  return at != all_.end() ? at->second : nullptr;
}

BlockRecord record_of(const std::filesystem::path& root, FoundBlock found,
                      const NamespaceNames& names) {
  BlockRecord record{
      {found.hash, root / block_path(found.hash), found.file_bytes, 0, found.mtime, {}}};
  record.allocated = found.allocated;
  record.state = state_of(found);
  if (!found.header) return record;
  record.meta.created_at = found.header->created_at.value_or(found.mtime);
  record.meta.info = std::move(found.header->info);
  record.has_digest = found.header->has_digest;
  record.identity = std::move(found.header->identity);
  record.name_space = names.find(record.identity);
  return record;
}

Result<DirectoryTotals> list_blocks(FileSystem& file_system, const std::filesystem::path& root,
                                    const std::function<void(BlockRecord)>& visit,
                                    Leftovers leftovers) {
  const NamespaceNames names = NamespaceNames::read(file_system);
  DirectoryTotals totals;
  ScanSettings settings;
  settings.read_only = leftovers == Leftovers::kKeep;
  settings.now = system_clock()->wall();
  KVKEEP_TRY_ASSIGN(const ScanReport report,
                    scan_store(file_system, settings, [&](FoundBlock found) {
                      ++totals.blocks;
                      totals.file_bytes += found.file_bytes;
                      totals.block_bytes += found.allocated;
                      visit(record_of(root, std::move(found), names));
                    }));
  add_scan(totals, report);
  totals.max_size_bytes = read_recorded_limit(file_system);
  if (const Result<SpaceInfo> space = file_system.space(); space.ok()) {
    totals.capacity_bytes = space->capacity;
    totals.free_bytes = space->free;
  }
  return totals;
}

Result<std::vector<BlockHash>> find_keys(FileSystem& file_system, std::string_view hex_prefix) {
  const std::string subdir(hex_prefix.substr(0, 1));
  std::vector<BlockHash> keys;
  if (!is_subdir(subdir)) return keys;
  const Status listed = file_system.list_dir(subdir, [&](const DirEntry& entry) {
    StoreName name = classify(subdir, entry.name);
    const bool matches = entry.name.compare(0, hex_prefix.size(), hex_prefix) == 0;
    if (matches && name.kind == NameKind::kBlock) keys.push_back(*std::move(name.hash));
  });
  if (!listed.ok() && listed.code() != Code::kNotFound) return listed;
  std::sort(keys.begin(), keys.end());
  return keys;
}

}  // namespace kvkeep
