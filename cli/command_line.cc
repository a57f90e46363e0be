// The only file that sees CLI11, which takes long to compile.

#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <list>

#include "cli/generate.h"
#include "cli/verb.h"
#include "kvkeep/version.h"

namespace kvkeep::cli {
namespace {

constexpr const char* kVersionText = "kvkeep " KVKEEP_VERSION;

// What CLI11 fills in for one verb. Its addresses must not change.
struct Parsed {
  const Verb* verb = nullptr;
  CLI::App* app = nullptr;
  std::vector<std::string> words;
  std::map<std::string, std::string> values;
  std::map<std::string, std::vector<std::string>> lists;
  std::map<std::string, bool> switches;
};

void add_flag(Parsed& parsed, const Flag& flag) {
  const std::string name(flag.name);
  CLI::Option* option = nullptr;
  if (flag.value.empty()) {
    option = parsed.app->add_flag("--" + name, parsed.switches[name]);
  } else if (flag.repeats) {
    option = parsed.app->add_option("--" + name, parsed.lists[name])->allow_extra_args(false);
  } else {
    option = parsed.app->add_option("--" + name, parsed.values[name]);
  }
  if (!flag.variable.empty()) option->envname(std::string(flag.variable));
}

void add_verb(CLI::App& program, const Verb& verb, Parsed& parsed) {
  parsed.verb = &verb;
  parsed.app = program.add_subcommand(std::string(verb.name));
  parsed.app->set_version_flag("--version", kVersionText);
  if (verb.words_max != 0) {
    CLI::Option* words = parsed.app->add_option(std::string(verb.words), parsed.words);
    if (verb.words_max > 0) words->expected(0, verb.words_max);
  }
  for (const Flag& flag : verb.flags) add_flag(parsed, flag);
}

Arguments arguments_of(const Parsed& parsed) {
  Arguments arguments;
  arguments.words = parsed.words;
  for (const auto& [name, value] : parsed.values) {
    if (!value.empty()) arguments.values.emplace(name, value);
  }
  for (const auto& [name, list] : parsed.lists) {
    if (!list.empty()) arguments.lists.emplace(name, list);
  }
  for (const auto& [name, on] : parsed.switches) {
    if (on) arguments.switches.insert(name);
  }
  return arguments;
}

class CommandLine {
 public:
  CommandLine() : program_("", "kvkeep") {
    program_.set_version_flag("--version", kVersionText);
    program_.add_option("--generate", generate_);
    program_.require_subcommand(0, 1);
    for (const Verb& verb : verbs()) add_verb(program_, verb, parsed_.emplace_back());
  }

  int run(int argc, const char* const* argv, Console& console) {
    try {
      program_.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      console.print(chosen() != nullptr ? verb_help(*chosen()->verb) : program_help());
      return kFine;
    } catch (const CLI::CallForVersion&) {
      console.line(kVersionText);
      return kFine;
    } catch (const CLI::ParseError& error) {
      return wrong_usage(error.what(), console);
    }
    if (!generate_.empty()) return generate(console);
    if (chosen() == nullptr) return wrong_usage("a command is missing", console);
    return chosen()->verb->run(arguments_of(*chosen()), console);
  }

 private:
  const Parsed* chosen() const {
    for (const Parsed& parsed : parsed_) {
      if (parsed.app->parsed()) return &parsed;
    }
    return nullptr;
  }

  int wrong_usage(const std::string& why, Console& console) const {
    const std::string verb = chosen() != nullptr ? std::string(chosen()->verb->name) : "";
    console.complain(verb, why, "see kvkeep " + (verb.empty() ? "" : verb + " ") + "--help");
    return kWrongUsage;
  }

  int generate(Console& console) const {
    if (generate_ == "complete-bash") {
      console.print(bash_completion());
    } else if (generate_ == "complete-zsh") {
      console.print(zsh_completion());
    } else if (generate_ == "complete-fish") {
      console.print(fish_completion());
    } else if (generate_ == "man") {
      console.print(manual_page());
    } else {
      return wrong_usage("--generate " + generate_ + ": there is " + std::string(kGenerated),
                         console);
    }
    return kFine;
  }

  CLI::App program_;
  std::string generate_;
  std::list<Parsed> parsed_;
};

}  // namespace

int run_program(int argc, const char* const* argv, Console& console) {
  return CommandLine().run(argc, argv, console);
}

}  // namespace kvkeep::cli
