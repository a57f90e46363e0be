#include "kvkeep/token_digest.h"

#include "hash/sha256.h"

namespace kvkeep {

Result<TokenDigest> token_digest(std::span<const uint32_t> tokens) {
  Sha256 sha;
  sha.start();
  sha.add(std::as_bytes(tokens));
  return sha.finish();
}

}  // namespace kvkeep
