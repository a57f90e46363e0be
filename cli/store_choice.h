// Which store, and which block, a command means.
//
// Threads: one thread.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/verb.h"
#include "kvkeep/block_hash.h"
#include "kvkeep/status.h"

namespace kvkeep::cli {

// The value of an environment variable; none if it is unset or empty.
using Variables = std::function<std::optional<std::string>(const char*)>;
Variables process_variables();

// $XDG_CACHE_HOME/kvkeep, or ~/.cache/kvkeep.
std::optional<std::filesystem::path> store_home(const Variables& variables);

// The only store below store_home(). kNotFound: there is none. kInvalidArgument: there are several;
// the message lists them.
Result<std::filesystem::path> only_store(const Variables& variables);

// The store that was named (the word DIR, --dir, KVKEEP_DIR), else the only one. kInvalidArgument
// also if it is named twice.
Result<std::filesystem::path> choose_store(const std::optional<std::string>& word,
                                           const Arguments& arguments, const Variables& variables);

// The same for verbs whose one word is DIR, in the environment of this process.
Result<std::filesystem::path> store_of(const Arguments& arguments);

// 6 or more hex characters, of either case, and nothing that exists as a directory.
bool looks_like_key(const std::string& word);

// What comes after a verb that takes [DIR] KEY….
struct DirAndKeys {
  std::optional<std::string> dir{};
  std::vector<std::string> keys{};
};
DirAndKeys split_words(std::vector<std::string> words);

// The one block whose key begins with `word`. kNotFound; kInvalidArgument if it is too short, no
// hex, or the beginning of several.
Result<BlockHash> resolve_key(const std::filesystem::path& store, const std::string& word);
// The same for a block that need not be there: one in the quarantine, or any key of 32 bytes that
// is written out.
Result<BlockHash> resolve_asked_key(const std::filesystem::path& store, const std::string& word);

}  // namespace kvkeep::cli
