// SHA-256 by OpenSSL: one object digests any number of messages, one after another.
//
// Threads: one thread at a time each.
// Errors:  a failure inside OpenSSL (memory, a provider that lacks SHA-256) sticks until finish(),
// which
//          reports it as kInternal. The object is not usable afterwards.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "kvkeep/block_hash.h"
#include "kvkeep/status.h"

struct evp_md_ctx_st;

namespace kvkeep {

class Sha256 {
 public:
  static constexpr size_t kBytes = 32;
  using Digest = std::array<std::byte, kBytes>;

  Sha256();

  // Starts a message and forgets what was added before.
  void start();
  void add(BytesView bytes);
  void add_u8(uint8_t value);
  void add_u32(uint32_t value);  // Little-endian.
  // The digest of everything added since start().
  Result<Digest> finish();
  // The same as a key.
  Result<BlockHash> finish_key();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
  bool ok_ = false;
};

}  // namespace kvkeep
