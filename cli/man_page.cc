#include "cli/generate.h"
#include "kvkeep/version.h"

namespace kvkeep::cli {
namespace {

// Text of a line that may begin with anything.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  const bool control = !out.empty() && (out[0] == '.' || out[0] == '\'');
  return control ? "\\&" + out : out;
}

std::string section_of(const Verb& verb) {
  std::string out = ".SS " + roff(verb.name) + " " + roff(verb.words) + "\n";
  out += roff(verb.details) + "\n";
  for (const Flag& flag : verb.flags) {
    out += ".TP\n.B " + roff(flag_text(flag)) + "\n" + roff(flag.help);
    if (!flag.variable.empty()) out += " (" + roff(flag.variable) + ")";
    out += "\n";
  }
  return out + ".P\nExample:\n.P\n.nf\n    " + roff(verb.example) + "\n.fi\n";
}

}  // namespace

std::string manual_page() {
  std::string out =
      ".TH KVKEEP 1 \"\" \"kvkeep " KVKEEP_VERSION
      "\" \"User Commands\"\n"
      ".SH NAME\nkvkeep \\- looks after stores of KV\\-cache blocks\n"
      ".SH SYNOPSIS\n.B kvkeep\n.I COMMAND\n[OPTION...]\n"
      ".SH DESCRIPTION\n"
      "A store is a directory in which kvkeep keeps the attention state (KV cache) of prompts.\n"
      "Commands that only look work while a server uses the store and write nothing. Those that\n"
      "change it own the store meanwhile, as a server does, and refuse a store in use.\n"
      ".P\nWithout DIR, commands use \\-\\-dir, KVKEEP_DIR, or the only store below\n"
      "$XDG_CACHE_HOME/kvkeep (~/.cache/kvkeep). Sizes are written 512MB or 50GB\n"
      "(1GB = 1024MB), ages 90s, 12h or 7d. A key may be shortened to any unique beginning of at\n"
      "least 6 characters.\n"
      ".SH COMMANDS\n";
  for (const Verb& verb : verbs()) out += section_of(verb);
  return out +
         ".SH EXIT STATUS\n"
         ".TP\n.B 0\nFine.\n"
         ".TP\n.B 1\nA problem was found: damage, over a limit, not found.\n"
         ".TP\n.B 2\nWrong usage.\n"
         ".TP\n.B 3\nThe system, or the process that owns the store, refused.\n"
         ".SH ENVIRONMENT\n"
         "Most options have a variable, named with them; what the command line says wins.\n"
         ".TP\n.B NO_COLOR\nIf set, output has no colours.\n";
}

}  // namespace kvkeep::cli
