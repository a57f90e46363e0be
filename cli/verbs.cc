#include "cli/verb.h"

namespace kvkeep::cli {

std::vector<Verb> store_verbs() {
  return {ls_verb(),     inspect_verb(), why_verb(), stats_verb(),
          verify_verb(), gc_verb(),      rm_verb(),  dir_verb()};
}

}  // namespace kvkeep::cli
