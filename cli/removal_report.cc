#include "cli/removal_report.h"

#include <nlohmann/json.hpp>

#include "cli/text.h"
#include "kvkeep/size_string.h"

namespace kvkeep::cli {

int print_removal(const RemovalReport& report, std::string_view verb, const Arguments& arguments,
                  Console& console) {
  const bool dry_run = arguments.has("dry-run");
  if (arguments.has("json")) {
    const nlohmann::ordered_json out{{"dry_run", dry_run},
                                     {"removed_blocks", report.blocks},
                                     {"removed_bytes", report.bytes},
                                     {"bytes_left", report.bytes_left},
                                     {"failed", report.failed}};
    console.line(out.dump());
  } else {
    console.line((dry_run ? "would remove " : "removed ") + count_of(report.blocks, "block") +
                 ", " + format_bytes(report.bytes));
  }
  if (report.first_failure.ok()) return kFine;
  if (report.failed > 0) {
    console.complain(verb, count_of(report.failed, "block") + " could not be removed, the first: " +
                               report.first_failure.message());
  } else {
    console.complain(verb,
                     "the removal may not outlive power loss: " + report.first_failure.message());
  }
  return kRefused;
}

}  // namespace kvkeep::cli
