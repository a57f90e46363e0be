// FaultPlan says which file system calls go wrong, and how. FaultyFileSystem asks it before each
// call.
//
// A fault matches calls of one operation whose path contains a text ("" matches every path); a
// rename matches by either path. Faults are tried in the order in which they were planned, the
// first one that applies counts.
//
// Threads: any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "testing/operation.h"

namespace kvkeep::testing {

// Holds the calls that it matches until it is released, at the latest by its destructor.
class BlockedCalls {
 public:
  struct Gate;
  explicit BlockedCalls(std::shared_ptr<Gate> gate) : gate_(std::move(gate)) {}
  BlockedCalls(BlockedCalls&&) = default;
  BlockedCalls& operator=(BlockedCalls&&) = delete;
  ~BlockedCalls();

  // Returns once `count` calls are held. False after 30 s of real time: the test has failed.
  [[nodiscard]] bool wait_until_blocked(size_t count = 1);
  // Lets them go on, and all later ones pass.
  void release();

 private:
  std::shared_ptr<Gate> gate_;
};

class FaultPlan {
 public:
  // The `nth` matching call from now on fails with `error`, an errno.
  void fail(Op op, std::string path_part, int error, uint64_t nth = 1) KVKEEP_EXCLUDES(mu_);
  void fail_every(Op op, std::string path_part, int error) KVKEEP_EXCLUDES(mu_);
  // The next matching append writes the first `bytes` bytes (or all it has) and then fails.
  void short_append(std::string path_part, uint64_t bytes, int error) KVKEEP_EXCLUDES(mu_);
  // Every matching read gives at most `bytes` bytes.
  void short_reads(std::string path_part, uint64_t bytes) KVKEEP_EXCLUDES(mu_);
  // Every matching read finds the end of the file at `size`, whatever its stat says.
  void end_reads_at(std::string path_part, uint64_t size) KVKEEP_EXCLUDES(mu_);
  // Every matching read gives the file with one bit inverted.
  void flip_on_read(std::string path_part, uint64_t bit) KVKEEP_EXCLUDES(mu_);
  // Holds every matching call before it begins.
  [[nodiscard]] BlockedCalls block(Op op, std::string path_part) KVKEEP_EXCLUDES(mu_);
  // space() says that much is free. Nothing: the truth again.
  void set_space(std::optional<uint64_t> free) KVKEEP_EXCLUDES(mu_);
  // space() says that the file system counts inodes and that so many are free. Nothing: the truth.
  void set_free_inodes(std::optional<uint64_t> free) KVKEEP_EXCLUDES(mu_);
  // `calls` more calls that change the disk succeed, every later one fails with EIO.
  void lose_power_after(uint64_t calls) KVKEEP_EXCLUDES(mu_);
  bool power_lost() const KVKEEP_EXCLUDES(mu_);
  // Forgets everything planned; the power is back. Calls that are held stay held.
  void clear() KVKEEP_EXCLUDES(mu_);

  // For the file system
  // ------------------------------------------------------------------------------

  struct Verdict {
    int error = 0;
    std::optional<uint64_t> bytes;  // An append or read that handles only so many.
  };
  // Waits where the call is to be held.
  Verdict before(const Operation& operation) KVKEEP_EXCLUDES(mu_);
  // Damages what was read at `offset`. How many bytes of it are left.
  size_t after_read(std::string_view path, uint64_t offset, std::span<std::byte> bytes)
      KVKEEP_EXCLUDES(mu_);
  std::optional<uint64_t> free_space() const KVKEEP_EXCLUDES(mu_);
  std::optional<uint64_t> free_inodes() const KVKEEP_EXCLUDES(mu_);

 private:
  enum class Kind : uint8_t { kFail, kShort, kEndAt, kFlip, kBlock };
  struct Fault {
    Kind kind = Kind::kFail;
    Op op = Op::kRead;
    std::string path_part;
    uint64_t skip = 0;   // Matching calls that pass first.
    uint64_t times = 1;  // Then so many are hit.
    int error = 0;
    uint64_t number = 0;  // Bytes, size or bit.
    std::shared_ptr<BlockedCalls::Gate> gate;
  };

  void add(Fault fault) KVKEEP_EXCLUDES(mu_);
  void wait_at_gates(const Operation& operation) KVKEEP_EXCLUDES(mu_);
  Verdict judge(const Operation& operation) KVKEEP_REQUIRES(mu_);

  mutable Mutex mu_;
  std::vector<Fault> faults_ KVKEEP_GUARDED_BY(mu_);
  std::optional<uint64_t> free_ KVKEEP_GUARDED_BY(mu_);
  std::optional<uint64_t> free_inodes_ KVKEEP_GUARDED_BY(mu_);
  std::optional<uint64_t> calls_until_power_loss_ KVKEEP_GUARDED_BY(mu_);
};

}  // namespace kvkeep::testing
