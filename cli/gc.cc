#include "cli/console.h"
#include "cli/flags.h"
#include "cli/removal_report.h"
#include "cli/store_choice.h"
#include "cli/text.h"
#include "cli/verb.h"
#include "cli/work.h"
#include "kvkeep/directory.h"
#include "kvkeep/size_string.h"

namespace kvkeep::cli {
namespace {

Result<GcOptions> options_of(const Arguments& arguments) {
  GcOptions options;
  if (const auto size = arguments.value("max-size")) {
    KVKEEP_TRY_ASSIGN(options.max_size, parse_size(*size));
  }
  if (const auto age = arguments.value("older-than")) {
    KVKEEP_TRY_ASSIGN(options.older_than_seconds, parse_age(*age));
  }
  if (!options.max_size && !options.older_than_seconds) {
    return Status(Code::kInvalidArgument,
                  "say what may stay: --max-size SIZE or --older-than AGE (see kvkeep gc --help)");
  }
  options.model_name = arguments.value("model").value_or("");
  options.dry_run = arguments.has("dry-run");
  return options;
}

int run_gc(const Arguments& arguments, Console& console) {
  Result<GcOptions> options = options_of(arguments);
  if (!options.ok()) return console.fail("gc", options.status());
  const auto store = store_of(arguments);
  if (!store.ok()) return console.fail("gc", store.status());
  Progress progress(console, "gc");
  options->progress = removal_progress(progress);
  const Result<RemovalReport> report = collect_garbage(*store, *options);
  if (!report.ok()) return console.fail("gc", report.status());
  const int status = print_removal(*report, "gc", arguments, console);
  if (status != kFine || !options->max_size || report->bytes_left <= *options->max_size) {
    return status;
  }
  console.complain(
      "gc",
      store->string() + " holds " + format_bytes(report->bytes_left) + " all the same, more than " +
          format_bytes(*options->max_size) + ": no other block may go",
      options->model_name.empty() ? "the rest are the store's own files" : "try without --model");
  return kFoundProblem;
}

}  // namespace

Verb gc_verb() {
  return {"gc",
          "[DIR]",
          1,
          "bring a store under a size or an age",
          "Removes blocks, least recently used first, but none before the blocks that continue it. "
          "At least one of --max-size and --older-than is needed.",
          "kvkeep gc --max-size 50GB --older-than 30d",
          {kDirFlag,
           {"max-size", "SIZE", "of the whole store, such as 50GB", "KVKEEP_MAX_SIZE"},
           {"older-than", "AGE", "blocks not used for this long, such as 7d", "KVKEEP_OLDER_THAN"},
           kModelFlag,
           kDryRunFlag,
           kJsonFlag},
          run_gc};
}

}  // namespace kvkeep::cli
