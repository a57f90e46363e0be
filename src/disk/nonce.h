// The name under which a process owns a store and writes its temporary files.
#pragma once

#include <string>

namespace kvkeep {

// 16 hex characters, random. Threads: any thread.
std::string random_nonce();

}  // namespace kvkeep
