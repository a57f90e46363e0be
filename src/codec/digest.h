// The digest of a block file: XXH3-128 over the whole file with its own digits taken as '0'
// (docs/contract.md B.17). Bytes may arrive in any pieces, in order.
//
// Threads: one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "kvkeep/block_hash.h"
#include "kvkeep/status.h"

struct XXH3_state_s;

namespace kvkeep {

class FileDigest {
 public:
  static constexpr size_t kDigits = 32;

  // kResourceExhausted if there is no memory for its state.
  static Result<FileDigest> start();

  void update(BytesView bytes);
  // Of what has been added so far: 32 lower-case hex digits, the most significant first.
  std::string digits() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  explicit FileDigest(XXH3_state_s* state) : state_(state) {}
  std::unique_ptr<XXH3_state_s, Free> state_;
};

// The digest of `file`, whose own digits begin at `digits_at`. REQUIRES: digits_at + 32 <=
// file.size().
Result<std::string> digest_of_file(BytesView file, size_t digits_at);

}  // namespace kvkeep
