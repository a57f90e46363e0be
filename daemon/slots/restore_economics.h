// Whether it pays to restore a prompt's state: what the server would take to compute it, against
// what a restore takes, both as measured.
//
// A restore costs a fixed part and a part per byte, a computation a time per token. Late samples
// count more than early ones, and one wild sample moves an estimate by a bounded factor only.
//
// Threads: one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace kvkeep::daemon {

class RestoreEconomics {
 public:
  // Fewer tokens than 16 say more about the request than about the model, and are ignored, as is
  // what took no time or has no end.
  void note_prefill(uint64_t tokens, double seconds);
  // `seconds`: all of it, the loads of blocks and the server's part.
  void note_restore(uint64_t bytes, uint64_t tokens, double seconds);

  struct Verdict {
    bool pays = true;
    double gain_seconds = 0;  // 0: not known yet.
    double cost_seconds = 0;
  };
  // A restore pays if it gains 1.25 times its cost; and while a speed is unknown, since only trying
  // makes it known. Restores that were given up long ago count as unknown.
  Verdict judge(uint64_t tokens_gained, uint64_t bytes_to_restore) const;

  // The least number of tokens whose restore pays; none while a speed is unknown, or if none pays.
  std::optional<uint64_t> threshold_tokens(uint64_t bytes_per_token) const;

  // "prefill 512 tokens/s, restore 8ms and 410.00MB/s", for a log.
  std::string explain() const;

 private:
  struct Cost {
    double fixed = 0, per_byte = 0;  // Seconds.
  };
  std::optional<Cost> restore_cost() const;

  double prefill_per_token_ = 0;  // Seconds; 0: unknown.
  uint64_t prefills_since_restore_ = 0;

  // Decaying sums over the restores, for a straight line through them.
  struct Sums {
    double count = 0, bytes = 0, seconds = 0, bytes_squared = 0, bytes_seconds = 0;
  } restores_;
};

}  // namespace kvkeep::daemon
