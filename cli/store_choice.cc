#include "cli/store_choice.h"

#include <algorithm>
#include <cstdlib>

#include "kvkeep/directory.h"
#include "kvkeep/why.h"

namespace kvkeep::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLeastKeyCharacters = 6;
constexpr size_t kWholeKeyCharacters = 64;
constexpr size_t kListedMax = 5;

std::vector<fs::path> stores_below(const fs::path& home) {
  std::vector<fs::path> stores;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(home, ignored)) {
    // Only what a cache has opened: a directory found here by chance must not be taken for a store.
    if (fs::is_directory(entry.path() / ".kvkeep", ignored)) stores.push_back(entry.path());
  }
  if (fs::is_directory(home / ".kvkeep", ignored)) stores.push_back(home);
  std::sort(stores.begin(), stores.end());
  return stores;
}

bool is_hex(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c;
  return text;
}

Status several_keys(const std::string& word, const std::vector<BlockHash>& keys) {
  std::string text = "key \"" + word + "\": " + std::to_string(keys.size()) +
                     " blocks begin with it (write more of it):";
  for (size_t i = 0; i < std::min(keys.size(), kListedMax); ++i) text += "\n  " + keys[i].to_hex();
  return Status(Code::kInvalidArgument, std::move(text));
}

Status check_beginning(const std::string& word) {
  if (is_hex(word) && word.size() >= kLeastKeyCharacters) return {};
  return Status(Code::kInvalidArgument,
                "key \"" + word + "\": write at least 6 hex characters of it");
}

// The one of `keys`, which begin with `word`, that is meant.
Result<BlockHash> only_key(const fs::path& store, const std::string& word,
                           const std::vector<BlockHash>& keys) {
  const std::string prefix = lower(word);
  if (keys.empty()) {
    return Status(Code::kNotFound,
                  "no block in " + store.string() + " has a key that begins with " + prefix);
  }
  for (const BlockHash& key : keys) {
    if (key.to_hex() == prefix) return key;
  }
  if (keys.size() > 1) return several_keys(word, keys);
  return keys.front();
}

}  // namespace

Variables process_variables() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  };
}

std::optional<fs::path> store_home(const Variables& variables) {
  if (const auto cache_home = variables("XDG_CACHE_HOME")) return fs::path(*cache_home) / "kvkeep";
  if (const auto home = variables("HOME")) return fs::path(*home) / ".cache" / "kvkeep";
  return std::nullopt;
}

Result<fs::path> only_store(const Variables& variables) {
  const std::optional<fs::path> home = store_home(variables);
  const std::vector<fs::path> stores = home ? stores_below(*home) : std::vector<fs::path>();
  if (stores.size() == 1) return stores.front();
  if (stores.empty()) {
    const std::string where = home ? "below " + home->string() : "known, and HOME is not set";
    return Status(Code::kNotFound,
                  "there is no store " + where + " (name a directory, or set KVKEEP_DIR)");
  }
  std::string text = "there are several stores (name one, or set KVKEEP_DIR):";
  for (const fs::path& store : stores) text += "\n  " + store.string();
  return Status(Code::kInvalidArgument, std::move(text));
}

Result<fs::path> choose_store(const std::optional<std::string>& word, const Arguments& arguments,
                              const Variables& variables) {
  // Parsing has put KVKEEP_DIR where --dir would be, so a word wins over either.
  const std::optional<std::string> flag = arguments.value("dir");
  if (word && flag && flag != variables("KVKEEP_DIR")) {
    return Status(Code::kInvalidArgument, "two stores are named: " + *word + " and --dir " + *flag);
  }
  if (word || flag) return fs::path(word ? *word : *flag);
  return only_store(variables);
}

Result<fs::path> store_of(const Arguments& arguments) {
  std::optional<std::string> word;
  if (!arguments.words.empty()) word = arguments.words.front();
  return choose_store(word, arguments, process_variables());
}

bool looks_like_key(const std::string& word) {
  std::error_code ignored;
  return word.size() >= kLeastKeyCharacters && is_hex(word) && !fs::is_directory(word, ignored);
}

DirAndKeys split_words(std::vector<std::string> words) {
  DirAndKeys split;
  if (!words.empty() && !looks_like_key(words.front())) {
    split.dir = words.front();
    words.erase(words.begin());
  }
  split.keys = std::move(words);
  return split;
}

Result<BlockHash> resolve_key(const fs::path& store, const std::string& word) {
  KVKEEP_TRY(check_beginning(word));
  KVKEEP_TRY_ASSIGN(const std::vector<BlockHash> keys, find_keys(store, lower(word)));
  return only_key(store, word, keys);
}

Result<BlockHash> resolve_asked_key(const fs::path& store, const std::string& word) {
  KVKEEP_TRY(check_beginning(word));
  const std::string prefix = lower(word);
  KVKEEP_TRY_ASSIGN(std::vector<BlockHash> keys, find_keys(store, prefix));
  if (keys.empty()) {
    KVKEEP_TRY_ASSIGN(keys, find_quarantined_keys(store, prefix));
  }
  if (keys.empty() && prefix.size() == kWholeKeyCharacters) return BlockHash::from_hex(prefix);
  return only_key(store, word, keys);
}

}  // namespace kvkeep::cli
