#include "cli/console.h"
#include "cli/flags.h"
#include "cli/progress.h"
#include "cli/store_choice.h"
#include "cli/text.h"
#include "cli/verb.h"
#include "kvkeep/directory.h"
#include "kvkeep/size_string.h"

namespace kvkeep::cli {
namespace {

struct Verification {
  std::filesystem::path store;
  unsigned jobs = 0;
};

Result<Verification> verification_of(const Arguments& arguments) {
  Verification verification;
  if (const auto jobs = arguments.value("jobs")) {
    KVKEEP_TRY_ASSIGN(const uint64_t number, parse_count("jobs", *jobs));
    verification.jobs = static_cast<unsigned>(std::min<uint64_t>(number, 1024));
  }
  KVKEEP_TRY_ASSIGN(verification.store, store_of(arguments));
  return verification;
}

void print_block(const VerifiedBlock& block, bool json, Console& console) {
  if (json) return console.line(to_json(block));
  if (block.verdict.ok()) return;
  console.line(console.styled(shown(block.path.string()), Style::kBad) + ": " +
               shown(block.verdict.message()));
}

void print_totals(const VerifyTotals& totals, Console& console) {
  std::string text =
      "verified " + count_of(totals.blocks, "block") + ", " + format_bytes(totals.bytes) + ": ";
  const uint64_t bad = totals.damaged + totals.not_understood + totals.not_read;
  text += bad == 0 ? "all fine" : std::to_string(totals.damaged) + " damaged";
  if (totals.not_understood > 0) {
    text += ", " + std::to_string(totals.not_understood) + " of an unknown format version";
  }
  if (totals.not_read > 0) text += ", " + std::to_string(totals.not_read) + " could not be read";
  if (totals.without_digest > 0) {
    text += " (" + std::to_string(totals.without_digest) +
            " without a digest: only their structure could be checked)";
  }
  console.line(text);
}

int move_aside(const std::filesystem::path& store, const std::vector<BlockHash>& damaged, bool json,
               Console& console) {
  const Result<RemovalReport> moved = quarantine_damaged(store, damaged);
  if (!moved.ok()) {
    const std::string left = count_of(damaged.size(), "damaged block") + " stay where they are: ";
    console.complain("verify", left + moved.status().message());
    return exit_status(moved.status());
  }
  if (moved->failed > 0) return console.fail("verify", moved->first_failure);
  if (!json) {
    console.line("quarantined " + count_of(moved->blocks, "block") + ", " +
                 format_bytes(moved->bytes));
  }
  return kFoundProblem;
}

int status_of(const VerifyTotals& totals) {
  if (totals.damaged + totals.not_understood > 0) return kFoundProblem;
  return totals.not_read > 0 ? kRefused : kFine;
}

int run_verify(const Arguments& arguments, Console& console) {
  const Result<Verification> verification = verification_of(arguments);
  if (!verification.ok()) return console.fail("verify", verification.status());
  const bool json = arguments.has("json");
  std::vector<BlockHash> damaged;
  Progress progress(console, "verify");
  VerifyOptions options;
  options.jobs = verification->jobs;
  options.visit = [&](const VerifiedBlock& block) {
    print_block(block, json, console);
    if (block.verdict.code() == Code::kDataLoss) damaged.push_back(block.hash);
  };
  options.progress = [&](const VerifyProgress& done) {
    progress.update(done.bytes, done.bytes_total, count_of(done.blocks, "block"));
  };
  const Result<VerifyTotals> totals = verify_blocks(verification->store, options);
  if (!totals.ok()) return console.fail("verify", totals.status());
  if (!json) print_totals(*totals, console);
  if (!arguments.has("quarantine") || damaged.empty()) return status_of(*totals);
  return move_aside(verification->store, damaged, json, console);
}

}  // namespace

Verb verify_verb() {
  return {"verify",
          "[DIR]",
          1,
          "read every block and check all of it",
          "Reads every byte and checks what a load checks. Prints the blocks that a load would "
          "refuse.",
          "kvkeep verify --quarantine",
          {kDirFlag,
           {"jobs", "N", "files read at the same time", "KVKEEP_JOBS"},
           {"quarantine", "", "move damaged files to .kvkeep/quarantine/", "KVKEEP_QUARANTINE"},
           kJsonLinesFlag},
          run_verify};
}

}  // namespace kvkeep::cli
