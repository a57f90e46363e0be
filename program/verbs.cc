#include "cli/verb.h"
#include "program/llama_verb.h"

namespace kvkeep::cli {

std::span<const Verb> verbs() {
  static const std::vector<Verb> all = [] {
    std::vector<Verb> list = store_verbs();
    list.insert(list.begin(), program::llama_verb());
    return list;
  }();
  return all;
}

}  // namespace kvkeep::cli
