#include "hash/sha256.h"

#include <openssl/evp.h>

#include "base/bytes.h"

namespace kvkeep {

namespace {

// Looking the algorithm up costs more than digesting a short message, so it is done once.
const EVP_MD* algorithm() {
  static const EVP_MD* const found = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return found != nullptr ? found : EVP_sha256();  // The latter is looked up at every use.
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  ok_ = context_ != nullptr && EVP_DigestInit_ex(context_.get(), algorithm(), nullptr) == 1;
}

void Sha256::start() {
  // Without a type OpenSSL keeps the algorithm that it looked up in the constructor.
  ok_ = ok_ && EVP_DigestInit_ex(context_.get(), nullptr, nullptr) == 1;
}

void Sha256::add(BytesView bytes) {
  ok_ = ok_ && EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1;
}

void Sha256::add_u8(uint8_t value) { add(std::as_bytes(std::span(&value, 1))); }

void Sha256::add_u32(uint32_t value) {
  std::array<std::byte, sizeof value> bytes;
  store_le(bytes.data(), value);
  add(bytes);
}

Result<Sha256::Digest> Sha256::finish() {
  Digest digest;
  ok_ = ok_ && EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(digest.data()),
                                  nullptr) == 1;
  if (!ok_) return Status(Code::kInternal, "SHA-256: OpenSSL failed");
  return digest;
}

Result<BlockHash> Sha256::finish_key() {
  KVKEEP_TRY_ASSIGN(const Digest digest, finish());
  return BlockHash::from_bytes(digest);
}

}  // namespace kvkeep
