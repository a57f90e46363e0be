// What `kvkeep why` is asked, from its arguments.
//
// Threads: one thread.
#pragma once

#include <string>
#include <vector>

#include "cli/store_choice.h"
#include "cli/verb.h"
#include "kvkeep/status.h"
#include "kvkeep/why.h"

namespace kvkeep::cli {

std::vector<Flag> why_flags();

struct WhyQuestion {
  std::optional<std::string> dir{};
  std::vector<std::string> keys{};    // Of blocks; or else:
  std::optional<std::string> file{};  // Of the prompt's tokens.
  PromptQuestion prompt{};            // But for its tokens.
  ExpectedBlocks expected{};          // Of blocks that are asked for by key.
};
// kInvalidArgument.
Result<WhyQuestion> why_question(const Arguments& arguments, const Variables& variables);

}  // namespace kvkeep::cli
