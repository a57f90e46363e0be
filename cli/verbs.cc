#include "cli/verb.h"

namespace kvkeep::cli {
namespace {

constexpr Flag kDir{"dir", "DIR", "the store; instead of the word DIR", "KVKEEP_DIR"};
constexpr Flag kJson{"json", "", "print one JSON object", "KVKEEP_JSON"};
constexpr Flag kJsonLines{"json", "", "print one JSON object per line", "KVKEEP_JSON"};
constexpr Flag kDryRun{"dry-run", "", "only say what would go", "KVKEEP_DRY_RUN"};
constexpr Flag kModel{"model", "MODEL", "only blocks of this model", "KVKEEP_MODEL"};

}  // namespace

std::span<const Verb> verbs() {
  static const std::vector<Verb> all{
      {"ls",
       "[DIR]",
       1,
       "list the blocks of a store",
       "One line per block: short key, model, tokens, size, age, time since the last use, state.",
       "kvkeep ls --model my-model --sort size --limit 10",
       {kDir,
        kModel,
        {"sort", "ORDER", "used (default), size, age or key", "KVKEEP_SORT", "used|size|age|key"},
        {"limit", "N", "at most so many lines", "KVKEEP_LIMIT"},
        {"long", "", "also layers, block size, build, profile and the whole key", "KVKEEP_LONG"},
        kJsonLines},
       run_ls},
      {"inspect",
       "FILE | [DIR] KEY",
       2,
       "show everything about one block",
       "Metadata, identity, digest, the layers with their tensors, and whether a load would take "
       "the block. KEY is any unique beginning of a key, of at least 6 characters.",
       "kvkeep inspect 3fa95b",
       {kDir, kJson},
       run_inspect},
      {"stats",
       "[DIR]",
       1,
       "show totals of a store",
       "Blocks and bytes, per model, identity and state; what else is in the directory; free "
       "space.",
       "kvkeep stats --prometheus",
       {kDir,
        kJson,
        {"prometheus", "", "print the text format of Prometheus", "KVKEEP_PROMETHEUS"}},
       run_stats},
      {"verify",
       "[DIR]",
       1,
       "read every block and check all of it",
       "Reads every byte and checks what a load checks. Prints the blocks that a load would "
       "refuse.",
       "kvkeep verify --quarantine",
       {kDir,
        {"jobs", "N", "files read at the same time", "KVKEEP_JOBS"},
        {"quarantine", "", "move damaged files to .kvkeep/quarantine/", "KVKEEP_QUARANTINE"},
        kJsonLines},
       run_verify},
      {"gc",
       "[DIR]",
       1,
       "bring a store under a size or an age",
       "Removes blocks, least recently used first, but none before the blocks that continue it. "
       "At least one of --max-size and --older-than is needed.",
       "kvkeep gc --max-size 50GB --older-than 30d",
       {kDir,
        {"max-size", "SIZE", "of the whole store, such as 50GB", "KVKEEP_MAX_SIZE"},
        {"older-than", "AGE", "blocks not used for this long, such as 7d", "KVKEEP_OLDER_THAN"},
        kModel,
        kDryRun,
        kJson},
       run_gc},
      // What rm removes is said on the command line alone, never by a variable.
      {"rm",
       "[DIR] KEY…",
       -1,
       "remove blocks and those that continue them",
       "Removes the blocks with these keys, or those for which all of --model, --build and "
       "--newer-than hold that are given, or --all; and all their descendants.",
       "kvkeep rm --build b7421 --dry-run",
       {kDir,
        {"model", "MODEL", "blocks of this model"},
        {"build", "BUILD", "blocks that this build of the engine wrote"},
        {"newer-than", "AGE", "blocks written within this time, such as 2h"},
        {"all", "", "every block"},
        kDryRun,
        kJson},
       run_rm},
      {"dir",
       "",
       0,
       "print the store that commands use without DIR",
       "KVKEEP_DIR, else the only store below $XDG_CACHE_HOME/kvkeep (~/.cache/kvkeep).",
       "du -sh \"$(kvkeep dir)\"",
       {kJson},
       run_dir},
  };
  return all;
}

}  // namespace kvkeep::cli
