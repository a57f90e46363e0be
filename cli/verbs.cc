#include "cli/verb.h"

namespace kvkeep::cli {

std::span<const Verb> verbs() {
  static const std::vector<Verb> all{ls_verb(),     inspect_verb(), why_verb(), stats_verb(),
                                     verify_verb(), gc_verb(),      rm_verb(),  dir_verb()};
  return all;
}

}  // namespace kvkeep::cli
