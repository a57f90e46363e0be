// A store on disk as tools see it: listed, inspected, verified and tidied up without opening a
// cache.
//
// What reads never writes anything, not even a service file, and works beside the process that owns
// the store: files that come, go or are replaced meanwhile are no error.
// What writes owns the store while it works, by the same lock as a cache; where another process
// owns it, the answer is kFailedPrecondition with that process's pid.
//
//   kvkeep::list_blocks(root, [](kvkeep::BlockRecord block) { … });
//
// Threads: any thread. Callbacks run on the calling thread, with no lock held.
// Blocking: every function reads the disk; list_blocks() each header, verify_blocks() every byte.
// Errors:  kNotFound (no directory, no store in it, no such file), kFailedPrecondition (may not be
//          used; in use), kUnavailable (the system failed), each with a message for a person.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kvkeep/block_cache.h"
#include "kvkeep/block_hash.h"
#include "kvkeep/status.h"
#include "kvkeep/tensor.h"

namespace kvkeep {

// True if the directory is a store of kvkeep or oMLX: it has .kvkeep/, or block files, or all of
// the sub-directories 0 … f.
bool is_store(const std::filesystem::path& root);

// ---- Reading

// What wrote here, as .kvkeep/namespaces.json tells it: an identity (Options::identity), or the
// namespace that a chain of keys begins with (KeyChain).
struct NamespaceInfo {
  std::string digest;                         // 64 hex characters: of the identity, or the root.
  std::vector<std::string> model_names{};     // That were used with it.
  std::map<std::string, std::string> fields;  // The value of "salt" is always "salted".
  double recorded_at = 0;                     // Seconds since the Unix epoch.
  bool is_root = false;                       // Of a chain of keys.

  // The field "build" or "engine_build"; empty if there is neither.
  std::string build() const;
};
// In the order of their digests. A file that is missing or damaged gives none.
Result<std::vector<NamespaceInfo>> read_namespaces(const std::filesystem::path& root);

enum class BlockState : uint8_t {
  kOk,          // The header makes sense. Bytes behind it were not looked at.
  kUnreadable,  // The file cannot be read, or its header makes no sense.
  kVersion,     // Of a format version that is not understood.
  kMismatch,    // The file says that it is another block.
};
// "ok", "unreadable", "version", "mismatch".
std::string_view name_of(BlockState state);

// One block file.
struct BlockRecord {
  BlockMeta meta;          // last_access: the file's time. Empty beyond it unless kOk.
  uint64_t allocated = 0;  // Bytes on the device.
  BlockState state = BlockState::kOk;
  bool has_digest = false;                          // Of the extended profile.
  std::optional<std::string> identity;              // Digest of the identity.
  std::shared_ptr<const NamespaceInfo> name_space;  // What is known of it; may be null.
};
// One line of JSON: the keys of to_json(BlockMeta), then allocated_size, state, profile, and
// identity, identity_fields and build where they are known.
std::string to_json(const BlockRecord& record);

// Bytes are allocated bytes unless a name says otherwise.
struct DirectoryTotals {
  uint64_t blocks = 0;
  uint64_t file_bytes = 0;  // Lengths of block files.
  uint64_t block_bytes = 0;
  uint64_t overhead_bytes = 0;  // Directories and service files.
  uint64_t quarantine_files = 0;
  uint64_t quarantine_bytes = 0;
  uint64_t temp_files = 0;  // Being written, or left by a process that ended.
  uint64_t temp_bytes = 0;
  uint64_t foreign_files = 0;  // Not kvkeep's; not part of the store.
  uint64_t foreign_bytes = 0;
  uint64_t capacity_bytes = 0;  // Of the file system.
  uint64_t free_bytes = 0;
  // What store_bytes() may become, as the process was told that opened the store last. Absent: not
  // known.
  std::optional<uint64_t> max_size_bytes{};

  // What a limit is compared with.
  uint64_t store_bytes() const {
    return block_bytes + overhead_bytes + quarantine_bytes + temp_bytes;
  }
};

// Every block file, as it is found, in no particular order.
Result<DirectoryTotals> list_blocks(const std::filesystem::path& root,
                                    const std::function<void(BlockRecord)>& visit);

// The keys of block files that begin with these lower-case hex characters (at least one), sorted.
// Reads names only.
Result<std::vector<BlockHash>> find_keys(const std::filesystem::path& root,
                                         std::string_view hex_prefix);

enum class DigestState : uint8_t { kOk, kMissing, kWrong, kUnknown };  // kUnknown: no header.
std::string_view name_of(DigestState state);

struct TensorRow {
  std::string name;   // In the file.
  std::string place;  // For a person: "layer 3, element 0".
  DType dtype = DType::kU8;
  Shape shape{};  // True shape, also of a tensor without elements.
  uint64_t bytes = 0;
  bool is_null = false;  // A stand-in for no tensor at all.
};
struct LayerRow {
  uint32_t layer = 0;
  std::string kind;  // "pair", "nstate", "cache_list" or "turboquant".
  std::string type;  // Class name of the layer's cache, if known.
  uint64_t bytes = 0;
  std::vector<TensorRow> tensors{};
};

struct BlockInspection {
  BlockRecord record;
  std::vector<std::pair<std::string, std::string>> metadata{};  // As in the file, in its order.
  std::vector<LayerRow> layers{};
  DigestState digest = DigestState::kUnknown;
  Status verdict{};  // OK, or what a load would answer.
};
// One JSON object: the record's keys, digest, verdict, metadata and layers.
std::string to_json(const BlockInspection& inspection);

Result<BlockInspection> inspect_block(const std::filesystem::path& root, const BlockHash& key);
// Any block file, also one in the quarantine or outside of a store.
Result<BlockInspection> inspect_file(const std::filesystem::path& file);

struct VerifiedBlock {
  BlockHash hash;
  std::filesystem::path path;
  uint64_t file_size = 0;
  bool has_digest = false;  // Without one, tensor bytes cannot be checked.
  // OK, or what a load would answer: kDataLoss (damaged), kNotFound with kVersion, kUnavailable
  // (the system failed), kResourceExhausted (no memory).
  Status verdict{};
};
std::string to_json(const VerifiedBlock& block);

struct VerifyProgress {
  uint64_t blocks = 0;
  uint64_t blocks_total = 0;
  uint64_t bytes = 0;
  uint64_t bytes_total = 0;
};
struct VerifyOptions {
  unsigned jobs = 0;  // Files read at the same time; 0: as many as there are processors, at most 8.
  std::function<void(const VerifiedBlock&)> visit{};
  std::function<void(const VerifyProgress&)> progress{};
};
struct VerifyTotals {
  uint64_t blocks = 0;  // Files looked at; those that vanished meanwhile are not among them.
  uint64_t bytes = 0;   // Read.
  uint64_t damaged = 0;
  uint64_t not_understood = 0;  // Another format version.
  uint64_t not_read = 0;        // The system failed, or there was no memory.
  uint64_t without_digest = 0;  // Passed every other check.
};
// Reads every byte of every block file and checks all of it as a load does. A file that seems
// damaged is read a second time before it counts.
Result<VerifyTotals> verify_blocks(const std::filesystem::path& root, const VerifyOptions& options);

// ---- Writing

struct RemovalReport {
  uint64_t blocks = 0;      // Removed, or with dry_run: that would be.
  uint64_t bytes = 0;       // Theirs, allocated.
  uint64_t bytes_left = 0;  // Of the store afterwards.
  uint64_t failed = 0;      // Could not be removed.
  Status first_failure{};
};

// Blocks done, of how many; of 0 while the store is still being looked at.
using RemovalProgress = std::function<void(uint64_t done, uint64_t of)>;

struct GcOptions {
  std::optional<uint64_t> max_size{};          // Bytes of the store afterwards.
  std::optional<double> older_than_seconds{};  // Blocks not used for this long go.
  std::string model_name{};                    // Only blocks of this model; empty: all.
  bool dry_run = false;                        // Writes nothing and needs no lock.
  RemovalProgress progress{};
};
// Removes blocks, least recently used first, but none that has a child that stays. The store may
// remain larger than max_size where nothing more may go. kInvalidArgument if neither bound is
// given.
Result<RemovalReport> collect_garbage(const std::filesystem::path& root, const GcOptions& options);

struct RemoveOptions {
  std::vector<BlockHash> keys{};
  // Blocks for which all that is given here holds.
  std::string model_name{};
  std::string build{};                         // NamespaceInfo::build().
  std::optional<double> newer_than_seconds{};  // Written within the last so many seconds.
  bool all = false;
  bool dry_run = false;
  RemovalProgress progress{};
};
// Removes the blocks and all their descendants, leaves first. The removal outlives power loss.
// kInvalidArgument if nothing says which.
Result<RemovalReport> remove_blocks(const std::filesystem::path& root,
                                    const RemoveOptions& options);

// Reads these blocks once more and moves those that are still damaged to .kvkeep/quarantine/, which
// keeps 256 MiB, oldest leave first. The report counts what was moved.
Result<RemovalReport> quarantine_damaged(const std::filesystem::path& root,
                                         std::span<const BlockHash> keys);

}  // namespace kvkeep
