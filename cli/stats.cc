#include "cli/console.h"
#include "cli/flags.h"
#include "cli/store_choice.h"
#include "cli/store_stats.h"
#include "cli/verb.h"
#include "cli/work.h"

namespace kvkeep::cli {
namespace {

int run_stats(const Arguments& arguments, Console& console) {
  if (arguments.has("json") && arguments.has("prometheus")) {
    console.complain("stats", "--json and --prometheus contradict each other", "choose one");
    return kWrongUsage;
  }
  const auto store = store_of(arguments);
  if (!store.ok()) return console.fail("stats", store.status());
  StoreStats stats{*store};
  const Result<DirectoryTotals> totals =
      list_with_progress(*store, console, [&](const BlockRecord& block) { stats.add(block); });
  if (!totals.ok()) return console.fail("stats", totals.status());
  stats.totals = *totals;
  if (arguments.has("json")) {
    console.line(stats_json(stats));
  } else {
    console.print(arguments.has("prometheus") ? stats_prometheus(stats) : stats_text(stats, now()));
  }
  return kFine;
}

}  // namespace

Verb stats_verb() {
  return {"stats",
          "[DIR]",
          1,
          "show totals of a store",
          "Blocks and bytes, per model, identity and state; what else is in the directory; free "
          "space, and the limit that the store's last owner was given.",
          "kvkeep stats --prometheus",
          {kDirFlag,
           kJsonFlag,
           {"prometheus", "", "print the text format of Prometheus", "KVKEEP_PROMETHEUS"}},
          run_stats};
}

}  // namespace kvkeep::cli
