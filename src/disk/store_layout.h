// Names inside a store: where a block's file is, what temporary and service files are called.
//
//   <first hex character>/<hex key>.safetensors     a block
//   <first hex character>/.kvkeep-<nonce>-<n>.tmp   being written by the process with that nonce
//   .kvkeep/owner-<nonce>                           locked by a living process; holds its pid
//   .kvkeep/open.lock                               held while a process opens the store
//   .kvkeep/namespaces.json                         the namespaces that wrote here, by digest
//   .kvkeep/limit.json                              the limit that the owner was given
//   .kvkeep/quarantine/<hex key>-<n>.safetensors    damaged files, kept aside
//   CACHEDIR.TAG                                    tells backup programs to skip the store
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kvkeep/block_hash.h"

namespace kvkeep {

inline constexpr std::string_view kSubdirs = "0123456789abcdef";
inline constexpr std::string_view kServiceDir = ".kvkeep";
inline constexpr std::string_view kQuarantineDir = ".kvkeep/quarantine";
inline constexpr std::string_view kOpenLock = ".kvkeep/open.lock";
inline constexpr std::string_view kNamespacesFile = ".kvkeep/namespaces.json";
inline constexpr std::string_view kLimitFile = ".kvkeep/limit.json";
inline constexpr std::string_view kCacheTag = "CACHEDIR.TAG";

// "a/abc1….safetensors".
std::string block_path(const BlockHash& hash);
// The sub-directory of a block: one character.
std::string_view block_dir(const BlockHash& hash);
// "a/.kvkeep-0123456789abcdef-7.tmp": where the block is written first.
std::string temp_path(const BlockHash& hash, std::string_view nonce, uint64_t sequence);

// One character of kSubdirs.
bool is_subdir(std::string_view name);
// 16 lower-case hex characters.
bool is_nonce(std::string_view text);
// ".kvkeep/owner-<nonce>".
std::string owner_path(std::string_view nonce);
// The nonce in "owner-<nonce>", if `name` is such a name.
std::optional<std::string> owner_nonce(std::string_view name);
// True for "owner-<nonce>.tmp": an owner file before it is renamed into place.
bool is_owner_temp(std::string_view name);

// ".kvkeep/quarantine/<hex key>-<n>.safetensors".
std::string quarantine_path(const BlockHash& hash, uint64_t number);
// The number in a name inside the quarantine, if `name` is one of ours.
std::optional<uint64_t> quarantine_number(std::string_view name);

enum class NameKind : uint8_t {
  kBlock,     // hash is set.
  kTemp,      // Ours; nonce is set.
  kSeedTemp,  // The temporary form of oMLX.
  kForeign,
};
struct StoreName {
  NameKind kind = NameKind::kForeign;
  std::optional<BlockHash> hash;
  std::string nonce;
};
// What `name` in sub-directory `dir` is. A block in the wrong sub-directory is foreign.
StoreName classify(std::string_view dir, std::string_view name);

}  // namespace kvkeep
