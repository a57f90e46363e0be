// The public functions of directory.h and why.h: they open the store and leave the work to the
// other files.

#include "kvkeep/directory.h"

#include <algorithm>

#include "directory/inspection.h"
#include "directory/listing.h"
#include "directory/removal.h"
#include "directory/store_access.h"
#include "directory/verification.h"
#include "directory/why.h"
#include "disk/store_layout.h"
#include "io/posix_file_system.h"
#include "kvkeep/environment.h"

namespace kvkeep {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kQuarantineAtMost = 256ull << 20;
constexpr std::string_view kBlockSuffix = ".safetensors";

// The quarantine that a cache of this size would keep.
uint64_t quarantine_for(const GcOptions& options) {
  return options.max_size ? std::min(*options.max_size / 100, kQuarantineAtMost) : UINT64_MAX;
}

// The key in "<hex>.safetensors" or, in the quarantine, "<hex>-<n>.safetensors".
std::optional<BlockHash> key_in_name(const fs::path& file) {
  std::string name = file.filename().string();
  if (file.extension() != kBlockSuffix) return std::nullopt;
  name.resize(name.size() - kBlockSuffix.size());
  const Result<BlockHash> hash = BlockHash::from_hex(name.substr(0, name.find('-')));
  return hash.ok() ? std::optional(*hash) : std::nullopt;
}

// Of the store that the file is in, if it is in one: its grandparent, or above the quarantine.
NamespaceNames names_around(const fs::path& dir) {
  for (const fs::path& root : {dir.parent_path(), dir.parent_path().parent_path()}) {
    if (root.empty()) continue;
    const auto file_system = open_posix_file_system(root, RootUse::kReadExisting);
    if (!file_system.ok()) continue;
    NamespaceNames names = NamespaceNames::read(**file_system);
    if (!names.all().empty()) return names;
  }
  return {};
}

// Plans, and carries the plan out unless it is a dry run. The store is owned before it is looked
// at, so that nobody changes it in between.
template <typename Options, typename Plan>
Result<RemovalReport> remove_from(const fs::path& root, const Options& options,
                                  uint64_t quarantine_bytes, const Plan& plan) {
  if (options.dry_run) {
    KVKEEP_TRY_ASSIGN(const auto file_system, open_store_to_read(root));
    KVKEEP_TRY_ASSIGN(const RemovalStock stock,
                      take_removal_stock(*file_system, root, Leftovers::kKeep, options.progress));
    return foretell(plan(stock));
  }
  KVKEEP_TRY_ASSIGN(const OwnedStore store, own_store(root, quarantine_bytes));
  KVKEEP_TRY_ASSIGN(RemovalStock stock, take_removal_stock(store.directory->file_system(), root,
                                                           Leftovers::kRemove, options.progress));
  stock.store_bytes -= std::min(stock.store_bytes, store.owner_bytes);
  return carry_out(plan(stock), *store.directory, options.progress);
}

}  // namespace

bool is_store(const fs::path& root) { return open_store_to_read(root).ok(); }

std::string NamespaceInfo::build() const {
  for (const char* name : {"build", "engine_build"}) {
    const auto field = fields.find(name);
    if (field != fields.end()) return field->second;
  }
  return {};
}

Result<std::vector<NamespaceInfo>> read_namespaces(const fs::path& root) {
  KVKEEP_TRY_ASSIGN(const auto file_system, open_store_to_read(root));
  std::vector<NamespaceInfo> all;
  const NamespaceNames names = NamespaceNames::read(*file_system);
  for (const auto& [digest, info] : names.all()) all.push_back(*info);
  return all;
}

std::string_view name_of(BlockState state) {
  switch (state) {
    case BlockState::kOk:
      return "ok";
    case BlockState::kVersion:
      return "version";
    case BlockState::kMismatch:
      return "mismatch";
    case BlockState::kUnreadable:
      break;
  }
  return "unreadable";
}

std::string_view name_of(DigestState state) {
  switch (state) {
    case DigestState::kOk:
      return "ok";
    case DigestState::kMissing:
      return "missing";
    case DigestState::kWrong:
      return "wrong";
    case DigestState::kUnknown:
      break;
  }
  return "unknown";
}

Result<DirectoryTotals> list_blocks(const fs::path& root,
                                    const std::function<void(BlockRecord)>& visit) {
  KVKEEP_TRY_ASSIGN(const auto file_system, open_store_to_read(root));
  return list_blocks(*file_system, root, visit);
}

Result<std::vector<BlockHash>> find_keys(const fs::path& root, std::string_view hex_prefix) {
  if (hex_prefix.empty()) return Status(Code::kInvalidArgument, "the beginning of a key is empty");
  KVKEEP_TRY_ASSIGN(const auto file_system, open_store_to_read(root));
  return find_keys(*file_system, hex_prefix);
}

Result<BlockInspection> inspect_block(const fs::path& root, const BlockHash& key) {
  KVKEEP_TRY_ASSIGN(const auto file_system, open_store_to_read(root));
  const std::string path = block_path(key);
  return inspect(*file_system, {path, root / path, key}, NamespaceNames::read(*file_system));
}

Result<BlockInspection> inspect_file(const fs::path& file) {
  const fs::path dir = fs::absolute(file).parent_path();
  KVKEEP_TRY_ASSIGN(const auto file_system, open_posix_file_system(dir, RootUse::kReadExisting));
  return inspect(*file_system, {file.filename().string(), file, key_in_name(file)},
                 names_around(dir));
}

Result<BlockAnswer> why_block(const fs::path& root, const BlockHash& key,
                              const ExpectedBlocks& expected) {
  KVKEEP_TRY_ASSIGN(const auto file_system, open_store_to_read(root));
  return BlockJudge(*file_system, root, expected).judge(key);
}

Result<std::vector<BlockHash>> find_quarantined_keys(const fs::path& root,
                                                     std::string_view hex_prefix) {
  if (hex_prefix.empty()) return Status(Code::kInvalidArgument, "the beginning of a key is empty");
  KVKEEP_TRY_ASSIGN(const auto file_system, open_store_to_read(root));
  return find_quarantined_keys(*file_system, hex_prefix);
}

Result<PromptAnswer> why_prompt(const fs::path& root, const PromptQuestion& question) {
  KVKEEP_TRY_ASSIGN(const auto file_system, open_store_to_read(root));
  return why_prompt(*file_system, root, question);
}

Result<VerifyTotals> verify_blocks(const fs::path& root, const VerifyOptions& options) {
  KVKEEP_TRY_ASSIGN(const auto file_system, open_store_to_read(root));
  return verify_blocks(file_system, root, options);
}

Result<RemovalReport> collect_garbage(const fs::path& root, const GcOptions& options) {
  if (!options.max_size && !options.older_than_seconds) {
    return Status(Code::kInvalidArgument, "nothing bounds what may stay: give a size or an age");
  }
  const double now = system_clock()->wall();
  return remove_from(root, options, quarantine_for(options),
                     [&](const RemovalStock& stock) { return plan_gc(stock, options, now); });
}

Result<RemovalReport> remove_blocks(const fs::path& root, const RemoveOptions& options) {
  const bool chosen = !options.keys.empty() || !options.model_name.empty() ||
                      !options.build.empty() || options.newer_than_seconds || options.all;
  if (!chosen) return Status(Code::kInvalidArgument, "nothing says which blocks are to go");
  const double now = system_clock()->wall();
  return remove_from(root, options, UINT64_MAX,
                     [&](const RemovalStock& stock) { return plan_removal(stock, options, now); });
}

Result<RemovalReport> quarantine_damaged(const fs::path& root, std::span<const BlockHash> keys) {
  KVKEEP_TRY_ASSIGN(const OwnedStore store, own_store(root, kQuarantineAtMost));
  KVKEEP_TRY_ASSIGN(const RemovalStock stock,
                    take_removal_stock(store.directory->file_system(), root, Leftovers::kRemove));
  return quarantine(keys, *store.directory, stock.store_bytes - store.owner_bytes);
}

}  // namespace kvkeep
