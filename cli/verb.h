// What a verb of the program is: its name, what it takes, and the function behind it. Parsing,
// help, completions and the manual page all come from this one table.
//
// Threads: one thread.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvkeep::cli {

class Console;

struct Flag {
  std::string_view name;   // Without dashes.
  std::string_view value;  // What stands for its value in the help; empty: a switch.
  std::string_view help;
  std::string_view variable = {};  // That gives it where the command line does not; may be empty.
  std::string_view choices = {};   // "used|size|…", for completion; the verb checks.
  bool repeats = false;            // May be given several times.
};

// What was given, as text; each verb makes its own sense of it.
struct Arguments {
  std::vector<std::string> words{};                         // Those without a flag.
  std::map<std::string, std::string> values{};              // By flag.
  std::map<std::string, std::vector<std::string>> lists{};  // Of flags that repeat.
  std::set<std::string> switches{};

  bool has(const std::string& flag) const { return switches.count(flag) == 1; }
  std::optional<std::string> value(const std::string& flag) const {
    const auto at = values.find(flag);
    return at != values.end() ? std::optional(at->second) : std::nullopt;
  }
  std::vector<std::string> list(const std::string& flag) const {
    const auto at = lists.find(flag);
    return at != lists.end() ? at->second : std::vector<std::string>();
  }
};

struct Verb {
  std::string_view name;
  std::string_view words;  // "[DIR] KEY…".
  int words_max = 0;       // -1: any number.
  std::string_view summary;
  std::string_view details;
  std::string_view example;
  std::vector<Flag> flags;
  int (*run)(const Arguments&, Console&);
};

// All of them, in the order of the help. Defined by the program that puts them together
// (program/verbs.cc).
std::span<const Verb> verbs();

// Those that work on a store.
std::vector<Verb> store_verbs();

// Exit statuses.
inline constexpr int kFine = 0;
inline constexpr int kFoundProblem = 1;  // Damage, over a limit, not found.
inline constexpr int kWrongUsage = 2;
inline constexpr int kRefused = 3;  // By the system, or by the process that owns the store.

// One file each.
Verb ls_verb();
Verb inspect_verb();
Verb stats_verb();
Verb verify_verb();
Verb why_verb();
Verb gc_verb();
Verb rm_verb();
Verb dir_verb();

}  // namespace kvkeep::cli
