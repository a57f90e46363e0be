#include "cli/console.h"
#include "cli/flags.h"
#include "cli/removal_report.h"
#include "cli/store_choice.h"
#include "cli/text.h"
#include "cli/verb.h"
#include "cli/work.h"
#include "kvkeep/directory.h"

namespace kvkeep::cli {
namespace {

struct Removal {
  std::filesystem::path store;
  RemoveOptions options;
};

Status refuse(const std::string& why) {
  return Status(Code::kInvalidArgument, why + " (see kvkeep rm --help)");
}

// Everything but keys.
Result<RemoveOptions> filters_of(const Arguments& arguments) {
  RemoveOptions options;
  options.model_name = arguments.value("model").value_or("");
  options.build = arguments.value("build").value_or("");
  if (const auto age = arguments.value("newer-than")) {
    KVKEEP_TRY_ASSIGN(options.newer_than_seconds, parse_age(*age));
  }
  options.all = arguments.has("all");
  options.dry_run = arguments.has("dry-run");
  const bool filtered =
      !options.model_name.empty() || !options.build.empty() || options.newer_than_seconds;
  if (options.all && filtered) return refuse("--all and a choice contradict each other");
  return options;
}

Result<Removal> removal_of(const Arguments& arguments) {
  Removal removal;
  KVKEEP_TRY_ASSIGN(removal.options, filters_of(arguments));
  const auto [dir, words] = split_words(arguments.words);
  const RemoveOptions& given = removal.options;
  const bool chosen = given.all || !given.model_name.empty() || !given.build.empty() ||
                      given.newer_than_seconds.has_value();
  if (words.empty() && !chosen) {
    return refuse("say what is to go: KEY…, --model, --build, --newer-than or --all");
  }
  if (!words.empty() && chosen) return refuse("keys and a choice contradict each other");
  KVKEEP_TRY_ASSIGN(removal.store, choose_store(dir, arguments, process_variables()));
  for (const std::string& word : words) {
    KVKEEP_TRY_ASSIGN(BlockHash key, resolve_key(removal.store, word));
    removal.options.keys.push_back(std::move(key));
  }
  return removal;
}

int run_rm(const Arguments& arguments, Console& console) {
  Result<Removal> removal = removal_of(arguments);
  if (!removal.ok()) return console.fail("rm", removal.status());
  Progress progress(console, "rm");
  removal->options.progress = removal_progress(progress);
  const Result<RemovalReport> report = remove_blocks(removal->store, removal->options);
  if (!report.ok()) return console.fail("rm", report.status());
  return print_removal(*report, "rm", arguments, console);
}

}  // namespace

Verb rm_verb() {
  // What rm removes is said on the command line alone, never by a variable.
  return {"rm",
          "[DIR] KEY…",
          -1,
          "remove blocks and those that continue them",
          "Removes the blocks with these keys, or those for which all of --model, --build and "
          "--newer-than hold that are given, or --all; and all their descendants.",
          "kvkeep rm --build b7421 --dry-run",
          {kDirFlag,
           {"model", "MODEL", "blocks of this model"},
           {"build", "BUILD", "blocks that this build of the engine wrote"},
           {"newer-than", "AGE", "blocks written within this time, such as 2h"},
           {"all", "", "every block"},
           kDryRunFlag,
           kJsonFlag},
          run_rm};
}

}  // namespace kvkeep::cli
