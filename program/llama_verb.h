// `kvkeep llama` as a verb of the program.
#pragma once

#include "cli/verb.h"

namespace kvkeep::program {

cli::Verb llama_verb();

}  // namespace kvkeep::program
