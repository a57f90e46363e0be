#include <algorithm>

#include "cli/generate.h"

namespace kvkeep::cli {
namespace {

constexpr size_t kHelpColumn = 24;
constexpr size_t kColumns = 80;

// "  left      right", with `right` broken at blanks below itself.
std::string entry(const std::string& left, std::string_view right) {
  std::string out = "  " + left;
  out += out.size() + 2 > kHelpColumn ? "\n" + std::string(kHelpColumn, ' ')
                                      : std::string(kHelpColumn - out.size(), ' ');
  while (right.size() > kColumns - kHelpColumn) {
    const size_t blank = right.rfind(' ', kColumns - kHelpColumn);
    if (blank == std::string_view::npos || blank == 0) break;
    out += std::string(right.substr(0, blank)) + "\n" + std::string(kHelpColumn, ' ');
    right.remove_prefix(blank + 1);
  }
  return out + std::string(right) + "\n";
}

std::string wrapped(std::string_view text) {
  std::string out;
  while (text.size() > kColumns) {
    const size_t blank = text.rfind(' ', kColumns);
    if (blank == std::string_view::npos || blank == 0) break;
    out += std::string(text.substr(0, blank)) + "\n";
    text.remove_prefix(blank + 1);
  }
  return out + std::string(text) + "\n";
}

}  // namespace

std::string flag_text(const Flag& flag) {
  return "--" + std::string(flag.name) + (flag.value.empty() ? "" : " " + std::string(flag.value));
}

std::string program_help() {
  std::string out = "Usage: kvkeep COMMAND [OPTION…]\n\nLooks after stores of KV-cache blocks.\n\n";
  for (const Verb& verb : verbs()) out += entry(std::string(verb.name), verb.summary);
  out += "\n" + entry("--help", "print this, or after a command: its help");
  out += entry("--version", "print the version");
  out += entry("--generate WHAT", "print " + std::string(kGenerated));
  out +=
      "\nWithout DIR, commands use --dir, KVKEEP_DIR, or the only store below\n"
      "$XDG_CACHE_HOME/kvkeep. Sizes are written 512MB or 50GB (1GB = 1024MB), ages 90s, 12h\n"
      "or 7d. Exit status: 0 fine, 1 a problem was found, 2 wrong usage, 3 the system refused.\n"
      "\nExample:\n  kvkeep ls ~/.cache/kvkeep/python --limit 10\n";
  return out;
}

std::string verb_help(const Verb& verb) {
  const std::string words = verb.words.empty() ? "" : " " + std::string(verb.words);
  std::string out = "Usage: kvkeep " + std::string(verb.name) + words + " [OPTION…]\n\n";
  out += wrapped(verb.details) + "\n";
  for (const Flag& flag : verb.flags) {
    const std::string variable =
        flag.variable.empty() ? "" : " [" + std::string(flag.variable) + "]";
    out += entry(flag_text(flag), std::string(flag.help) + variable);
  }
  out += entry("--help", "print this") + entry("--version", "print the version");
  return out + "\nExample:\n  " + std::string(verb.example) + "\n";
}

}  // namespace kvkeep::cli
