#include "cli/console.h"
#include "cli/listed_block.h"
#include "cli/store_choice.h"
#include "cli/store_stats.h"
#include "cli/verb.h"

namespace kvkeep::cli {

int run_stats(const Arguments& arguments, Console& console) {
  if (arguments.has("json") && arguments.has("prometheus")) {
    console.complain("stats", "--json and --prometheus contradict each other", "choose one");
    return kWrongUsage;
  }
  const bool named = !arguments.words.empty();
  const auto store = choose_store(named ? std::optional(arguments.words[0]) : std::nullopt,
                                  arguments, process_variables());
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

}  // namespace kvkeep::cli
