#include "codec/parsed_file.h"

#include <string>

#include "base/bytes.h"
#include "codec/block_codec.h"
#include "codec/block_metadata.h"
#include "codec/digest.h"

namespace kvkeep {
namespace {

// Where the digits stand: the digest is the last member of the metadata, which is the last member.
Result<size_t> digits_at(const ParsedFile& parsed, const std::string& digits) {
  std::string tail = ",\"" + std::string(kDigestKey) + "\":\"";
  const size_t before = tail.size();
  tail += digits + "\"}}";
  const size_t end = parsed.text.find_last_not_of(' ') + 1;
  if (end < tail.size() || parsed.text.substr(end - tail.size(), tail.size()) != tail) {
    return damaged("kvkeep_xxh3 is not the last member of the header");
  }
  return 8 + end - tail.size() + before;
}

// Null where has_digest() has the last word: no digest, or something that is none.
const std::string* stored_digits(const ParsedFile& parsed) {
  const std::string* digits = parsed.header.value(kDigestKey);
  return digits != nullptr && digits->size() == FileDigest::kDigits ? digits : nullptr;
}

Result<std::string> actual_digits(const ParsedFile& parsed, BytesView file) {
  KVKEEP_TRY_ASSIGN(const size_t at, digits_at(parsed, *stored_digits(parsed)));
  return digest_of_file(file, at);
}

}  // namespace

Result<ParsedFile> parse_file(BytesView file, uint64_t file_bytes) {
  if (file.size() < 8) return damaged("the file has " + std::to_string(file_bytes) + " bytes");
  ParsedFile parsed;
  KVKEEP_TRY_ASSIGN(parsed.data_at, header_bytes(file.first(8), file_bytes));
  if (file.size() < parsed.data_at) return damaged("the header is incomplete");
  parsed.text = as_text(file.subspan(8, parsed.data_at - 8));
  KVKEEP_TRY_ASSIGN(parsed.header,
                    SafetensorsHeader::parse(parsed.text, file_bytes - parsed.data_at));
  return parsed;
}

Result<FileDigestState> digest_state(const ParsedFile& parsed, BytesView file) {
  const std::string* digits = stored_digits(parsed);
  if (digits == nullptr) {
    return parsed.header.value(kDigestKey) == nullptr ? FileDigestState::kMissing
                                                      : FileDigestState::kWrong;
  }
  KVKEEP_TRY_ASSIGN(const std::string actual, actual_digits(parsed, file));
  return actual == *digits ? FileDigestState::kRight : FileDigestState::kWrong;
}

Status check_digest(const ParsedFile& parsed, BytesView file) {
  const std::string* digits = stored_digits(parsed);
  if (digits == nullptr) return {};
  KVKEEP_TRY_ASSIGN(const std::string actual, actual_digits(parsed, file));
  if (actual == *digits) return {};
  return damaged("the digest does not match: " + *digits + " is stored, " + actual + " was found");
}

}  // namespace kvkeep
