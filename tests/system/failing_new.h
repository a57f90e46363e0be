// A program that links failing_new.cc can let one of its allocations fail.
//
// Threads: counts and fails for each thread by itself.
#pragma once

#include <cstdint>
#include <functional>

namespace kvkeep::testing {

// Runs `call` with this thread's n-th allocation failing, from 0. False if it made fewer.
bool run_with_failure(int64_t n, const std::function<void()>& call);

}  // namespace kvkeep::testing
