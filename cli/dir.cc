#include <nlohmann/json.hpp>

#include "cli/console.h"
#include "cli/flags.h"
#include "cli/store_choice.h"
#include "cli/verb.h"

namespace kvkeep::cli {
namespace {

int run_dir(const Arguments& arguments, Console& console) {
  const Variables variables = process_variables();
  Result<std::filesystem::path> store = only_store(variables);
  if (const auto named = variables("KVKEEP_DIR")) store = std::filesystem::path(*named);
  if (!store.ok()) return console.fail("dir", store.status());
  if (!arguments.has("json")) {
    console.line(store->string());
    return kFine;
  }
  using Json = nlohmann::ordered_json;
  console.line(Json{{"dir", store->string()}}.dump(-1, ' ', false, Json::error_handler_t::replace));
  return kFine;
}

}  // namespace

Verb dir_verb() {
  return {"dir",
          "",
          0,
          "print the store that commands use without DIR",
          "KVKEEP_DIR, else the only store below $XDG_CACHE_HOME/kvkeep (~/.cache/kvkeep).",
          "du -sh \"$(kvkeep dir)\"",
          {kJsonFlag},
          run_dir};
}

}  // namespace kvkeep::cli
