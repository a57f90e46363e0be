// Texts made from the table of verbs: help, completions of shells, and the manual page.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "cli/verb.h"

namespace kvkeep::cli {

inline constexpr std::string_view kGenerated = "complete-bash|complete-zsh|complete-fish|man";

std::string program_help();
std::string verb_help(const Verb& verb);

std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();
std::string manual_page();

// "--limit N".
std::string flag_text(const Flag& flag);

}  // namespace kvkeep::cli
