#include "codec/digest.h"

#include <xxhash.h>
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
// Replaces the calls below by ones that pick the widest vectors at run time.
#include <xxh_x86dispatch.h>
#endif

#include "base/bytes.h"

namespace kvkeep {

void FileDigest::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

Result<FileDigest> FileDigest::start() {
  FileDigest digest(XXH3_createState());
  if (digest.state_ == nullptr) return Status(Code::kResourceExhausted, "no memory for a digest");
  XXH3_128bits_reset(digest.state_.get());
  return digest;
}

void FileDigest::update(BytesView bytes) {
  XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
}

std::string FileDigest::digits() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_.get()));
  return to_hex(std::as_bytes(std::span(canonical.digest)));
}

Result<std::string> digest_of_file(BytesView file, size_t digits_at) {
  static const std::string zeros(FileDigest::kDigits, '0');
  KVKEEP_TRY_ASSIGN(FileDigest digest, FileDigest::start());
  digest.update(file.first(digits_at));
  digest.update(as_byte_span(zeros));
  digest.update(file.subspan(digits_at + FileDigest::kDigits));
  return digest.digits();
}

}  // namespace kvkeep
