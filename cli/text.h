// Numbers, times and foreign texts as a person reads them.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kvkeep/status.h"

namespace kvkeep::cli {

// Seconds in "90s", "15m", "12h", "7d", "2w". kInvalidArgument, saying what is accepted, for
// anything else.
Result<double> parse_age(std::string_view text);
// The same form, in the largest unit that leaves at least two: "90s", "119m", "47h", "30d". A time
// that lies ahead is "0s".
std::string format_age(double seconds);

// "2026-11-30T16:27:44Z" of seconds since the Unix epoch.
std::string format_time(double seconds);

// "1 block", "2 blocks".
std::string count_of(uint64_t n, std::string_view noun);

// A whole number of at least 1. kInvalidArgument, naming the flag.
Result<uint64_t> parse_count(std::string_view flag, std::string_view text);

// What comes from files goes to a terminal without control characters, which could disturb it; they
// and what is not UTF-8 become '?'. "-" for an empty text.
std::string shown(std::string_view text);

}  // namespace kvkeep::cli
