// .kvkeep/namespaces.json: what the identity digests in block files, and the roots of the chains of
// keys, mean.
//
//   {"<64 hex>": {"kind": "identity", "model_names": ["m"], "fields": {"build": "b7"},
//                 "recorded_at": 1767225600.0}, "<64 hex>": {"kind": "root", …}, …}
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
#include <span>
#include <string>
#include <vector>

#include "io/file_system.h"
#include "kvkeep/status.h"

namespace kvkeep {

struct NamespaceEntry {
  std::vector<std::string> model_names{};
  std::map<std::string, std::string> fields{};
  double recorded_at = 0;  // Seconds since the Unix epoch.
  bool is_root = false;    // The digest is the root of a chain of keys; else that of an identity.
};
using Namespaces = std::map<std::string, NamespaceEntry>;  // By digest.

inline constexpr size_t kNamespacesMax = 4096;

// None if there is no file. kDataLoss if it is not what write would have written; kUnavailable.
Result<Namespaces> read_namespaces(FileSystem& file_system);

struct NamespaceClaim {
  std::string digest;
  std::string model_name;
  std::map<std::string, std::string> fields;
  double now = 0;  // Seconds since the Unix epoch.
  bool is_root = false;
};
// The contents of the file with these namespaces in it; empty if all of them are listed already. It
// has at most `max_bytes` bytes: the oldest entries leave, and claims that do not fit are not
// listed. OK also after damage, of which nothing is kept: `damage` then says what was wrong.
// kUnavailable if the file could not be read.
Result<std::string> namespaces_with(FileSystem& file_system, std::span<const NamespaceClaim> claims,
                                    uint64_t max_bytes, std::string& damage);

}  // namespace kvkeep
