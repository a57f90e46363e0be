#include "cli/generate.h"

namespace kvkeep::cli {
namespace {

std::string spaced(std::string_view choices) {
  std::string out(choices);
  for (char& c : out) c = c == '|' ? ' ' : c;
  return out;
}

std::string names_of_verbs() {
  std::string out;
  for (const Verb& verb : verbs()) out += std::string(verb.name) + " ";
  return out;
}

std::string names_of_flags(const Verb& verb) {
  std::string out;
  for (const Flag& flag : verb.flags) out += "--" + std::string(flag.name) + " ";
  return out + "--help --version";
}

// In single quotes of a shell.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

// A description inside of a zsh specification.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\'') continue;
    out += c;
  }
  return out;
}

std::string zsh_value(const Flag& flag) {
  if (flag.value.empty()) return "";
  if (!flag.choices.empty()) return ":value:(" + spaced(flag.choices) + ")";
  if (flag.value == "FILE") return ":file:_files";
  return flag.value == "DIR" ? ":directory:_files -/" : ":" + std::string(flag.value) + ":";
}

}  // namespace

std::string bash_completion() {
  std::string out =
      "# bash completion for kvkeep\n"
      "_kvkeep() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=\n"
      "  COMPREPLY=()\n"
      "  case $prev in\n"
      "    --dir) COMPREPLY=($(compgen -d -- \"$cur\")); return ;;\n"
      "    --generate) words=\"" +
      spaced(kGenerated) + "\" ;;\n";
  for (const Verb& verb : verbs()) {
    for (const Flag& flag : verb.flags) {
      if (flag.choices.empty()) continue;
      out += "    --" + std::string(flag.name) + ") words=\"" + spaced(flag.choices) + "\" ;;\n";
    }
  }
  out +=
      "  esac\n"
      "  if [ -n \"$words\" ]; then COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")); return; fi\n"
      "  if [ \"$COMP_CWORD\" = 1 ]; then\n"
      "    words=\"" +
      names_of_verbs() +
      "--help --version --generate\"\n"
      "  else\n"
      "    case ${COMP_WORDS[1]} in\n";
  for (const Verb& verb : verbs()) {
    out += "      " + std::string(verb.name) + ") words=\"" + names_of_flags(verb) + "\" ;;\n";
  }
  return out +
         "    esac\n"
         "  fi\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "  if [ \"$COMP_CWORD\" != 1 ] && [[ $cur != -* ]]; then\n"
         "    COMPREPLY+=($(compgen -f -- \"$cur\"))\n"
         "  fi\n"
         "}\n"
         "complete -o filenames -F _kvkeep kvkeep\n";
}

std::string zsh_completion() {
  std::string out =
      "#compdef kvkeep\n"
      "local -a commands\n"
      "commands=(\n";
  for (const Verb& verb : verbs()) {
    out += "  " + quoted(std::string(verb.name) + ":" + zsh_text(verb.summary)) + "\n";
  }
  out +=
      ")\n"
      "if (( CURRENT == 2 )); then\n"
      "  _describe command commands\n"
      "  compadd -- --help --version --generate\n"
      "  return\n"
      "fi\n"
      "case $words[2] in\n"
      "  --generate) compadd -- " +
      spaced(kGenerated) + " ;;\n";
  for (const Verb& verb : verbs()) {
    out += "  " + std::string(verb.name) + ") shift words; (( CURRENT-- )); _arguments \\\n";
    for (const Flag& flag : verb.flags) {
      out += "    " +
             quoted("--" + std::string(flag.name) + "[" + zsh_text(flag.help) + "]" +
                    zsh_value(flag)) +
             " \\\n";
    }
    out += "    '--help[print the help]' '--version[print the version]' '*:file:_files' ;;\n";
  }
  return out + "esac\n";
}

std::string fish_completion() {
  std::string out = "# fish completion for kvkeep\n";
  const std::string none = "complete -c kvkeep -n __fish_use_subcommand ";
  for (const Verb& verb : verbs()) {
    out += none + "-f -a " + std::string(verb.name) + " -d " + quoted(verb.summary) + "\n";
  }
  out += none + "-x -l generate -a " + quoted(spaced(kGenerated)) + "\n";
  out += "complete -c kvkeep -l help -d 'print the help'\n";
  out += "complete -c kvkeep -l version -d 'print the version'\n";
  for (const Verb& verb : verbs()) {
    for (const Flag& flag : verb.flags) {
      out += "complete -c kvkeep -n '__fish_seen_subcommand_from " + std::string(verb.name) +
             "' -l " + std::string(flag.name);
      if (flag.value == "DIR") out += " -r -a '(__fish_complete_directories)'";
      if (flag.value == "FILE") out += " -r";
      if (!flag.value.empty() && flag.value != "DIR" && flag.value != "FILE") out += " -x";
      if (!flag.choices.empty()) out += " -a " + quoted(spaced(flag.choices));
      out += " -d " + quoted(flag.help) + "\n";
    }
  }
  return out;
}

}  // namespace kvkeep::cli
