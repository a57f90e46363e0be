// What Python prints for a value inside a tuple (its repr): keys by "omlx-1" are made of it.
//
// Threads: any thread.
#pragma once

#include <string>

#include "kvkeep/chain_keys.h"

namespace kvkeep {

// A text in quotes, bytes as b'…', or an integer. Which characters are escaped depends on the
// Unicode tables of the Python that runs: kInvalidArgument naming the character, if it is not known
// to be the same in all since 3.6.
// REQUIRES: a text is UTF-8.
Result<std::string> python_text(const Extra& extra);

}  // namespace kvkeep
