// A text of any kind as one component of a path.
//
// Threads: any thread.
#pragma once

#include <string>
#include <string_view>

#include "kvkeep/status.h"

namespace kvkeep {

// At most 200 bytes of letters, digits, "-", "_", "%" and "."; never begins with ".". Different
// texts give different names. A text of such characters without "%" that is not too long is its own
// name.
// REQUIRES: not empty. kInternal if the crypto library fails.
Result<std::string> directory_name(std::string_view text);

}  // namespace kvkeep
