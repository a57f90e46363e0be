// Texts that come from people and from files: a size or a signature is refused, or means the same
// after it was written again.
#include <cstdlib>
#include <string>

#include "hash/signature.h"
#include "kvkeep/size_string.h"

namespace kvkeep {
namespace {

// Two decimals round up: from here on a size is printed as 2^63 bytes, which is no size.
constexpr uint64_t kPrintedTooLarge = (uint64_t{1} << 63) - (uint64_t{1} << 40) / 100;

void check_size(std::string_view text) {
  const Result<uint64_t> size = parse_size(text);
  if (!size.ok()) return;
  const Result<uint64_t> again = parse_size(std::to_string(*size));
  if (!again.ok() || *again != *size) std::abort();
  if (*size < kPrintedTooLarge && !parse_size(format_bytes(*size)).ok()) std::abort();
}

void check_signature(std::string_view text) {
  const std::optional<SignatureFields> fields = parse_signature(text);
  if (!fields) return;
  const std::string written = make_signature(*fields);
  if (written.empty()) return;
  const std::optional<SignatureFields> again = parse_signature(written);
  if (!again || make_signature(*again) != written) std::abort();
  if (signature_bits(written) != fields->turboquant_bits) std::abort();
}

}  // namespace
}  // namespace kvkeep

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  kvkeep::check_size(text);
  kvkeep::check_signature(text);
  return 0;
}
