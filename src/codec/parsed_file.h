// The parts of a block file that reading, inspecting and verifying have in common: its header text,
// and whether the digest in it is that of the bytes.
//
// Threads: any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "codec/safetensors_header.h"
#include "kvkeep/block_hash.h"
#include "kvkeep/status.h"

namespace kvkeep {

struct ParsedFile {
  SafetensorsHeader header;
  std::string_view text;  // With its padding; a view of the file.
  uint64_t data_at = 0;   // Bytes from the start of the file.
};

// The header of a file of `file_bytes` bytes that begins with `file`. damaged() if it is not whole
// or not a safetensors header; kResourceExhausted.
Result<ParsedFile> parse_file(BytesView file, uint64_t file_bytes);

enum class FileDigestState : uint8_t {
  kMissing,  // The file carries none.
  kRight,
  kWrong,
};

// Compares the digest with the bytes. damaged() if it is not where it belongs.
// REQUIRES: `parsed` is of `file`, which is whole.
Result<FileDigestState> digest_state(const ParsedFile& parsed, BytesView file);

// damaged(), with both digests, unless the digest is right or missing.
Status check_digest(const ParsedFile& parsed, BytesView file);

}  // namespace kvkeep
