// What a disk may hold after power loss: a beginning of the recorded changes, done again elsewhere.
//
//   const std::vector<Operation> changes = faulty->changes();
//   for (size_t n = 0; n <= changes.size(); ++n) {
//     auto disk = replay_changes(std::span(changes).first(n), Unsynced::kTorn);
//     … open it, and look …
//   }
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "testing/mem_file_system.h"
#include "testing/operation.h"

namespace kvkeep::testing {

// What becomes of the contents of files that were written after their last sync_data(). Names are
// always there: a system may write them before the contents.
enum class Unsynced : uint8_t {
  kKept,    // All of it: the process died, the system lived.
  kTorn,    // The first half.
  kZeroed,  // The length, but zeros: how file systems with delayed allocation lose data.
};

// `onto`: what the disk held when the recording began (it is changed). Null: nothing. Ends the test
// program if the changes do not fit it.
std::shared_ptr<MemFileSystem> replay_changes(std::span<const Operation> changes, Unsynced unsynced,
                                              std::shared_ptr<MemFileSystem> onto = nullptr);

}  // namespace kvkeep::testing
