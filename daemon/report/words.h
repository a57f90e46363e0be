// Numbers as a person reads them in a line of a log. Sizes: kvkeep/size_string.h.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>

namespace kvkeep::daemon {

// "9,812".
std::string format_count(uint64_t n);

// "0.4ms", "310ms", "2.1s", "21s", "12 min", "3 h": two figures or more, and none that nobody
// needs. "0ms" for what is negative or no number.
std::string format_duration(double seconds);

}  // namespace kvkeep::daemon
