// .kvkeep/namespaces.json: what the identity digests in block files mean.
//
//   {"<64 hex>": {"kind": "identity", "model_names": ["m"], "fields": {"build": "b7"},
//                 "recorded_at": 1767225600.0}, …}
//
// A field named "salt" is a secret: only that there is one is recorded, as "salted". The file helps
// tools to speak of models and builds; nothing is served or refused by it, so a damaged one costs
// those words and no more.
//
// Threads: one writer at a time, the owner of the store; readers any time, since the file is
// replaced by rename.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "io/file_system.h"
#include "kvkeep/status.h"

namespace kvkeep {

struct NamespaceEntry {
  std::vector<std::string> model_names{};
  std::map<std::string, std::string> fields{};
  double recorded_at = 0;  // Seconds since the Unix epoch.
};
using Namespaces = std::map<std::string, NamespaceEntry>;  // By digest.

inline constexpr size_t kNamespacesMax = 4096;

// None if there is no file. kDataLoss if it is not what write would have written; kUnavailable.
Result<Namespaces> read_namespaces(FileSystem& file_system);

struct NamespaceClaim {
  std::string digest;
  std::string model_name;
  std::map<std::string, std::string> fields;
  double now = 0;          // Seconds since the Unix epoch.
  uint64_t max_bytes = 0;  // Of the file; the oldest entries leave. An entry larger than it is not
                           // recorded.
};
// Makes sure that the identity is listed; writes only if it is not. OK also after damage, which is
// replaced: `damage` then says what was wrong. kUnavailable if it could not be written; the old
// file stays.
Status record_namespace(FileSystem& file_system, const NamespaceClaim& claim, std::string& damage);

}  // namespace kvkeep
