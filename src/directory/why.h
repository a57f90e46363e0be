// Judges the blocks of a store as a cache would that opens it now (kvkeep/why.h).
//
// Threads: one at a time.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "directory/listing.h"
#include "directory/verification.h"
#include "disk/header_reader.h"
#include "io/file_system.h"
#include "kvkeep/token_digest.h"
#include "kvkeep/why.h"

namespace kvkeep {

class BlockJudge {
 public:
  // `file_system` must outlive the judge. `root` is what paths begin with.
  BlockJudge(FileSystem& file_system, std::filesystem::path root, const ExpectedBlocks& expected);

  // As far as the header tells, then by every byte. `tokens`: of the caller's tokens, or null.
  BlockAnswer judge(const BlockHash& key, const TokenDigest* tokens = nullptr);
  // A file of this block is there.
  bool is_stored(const BlockHash& key) const;
  // What its header says; nothing if there is none that makes sense.
  std::optional<BlockHeader> header_of(const BlockHash& key);

  const NamespaceNames& names() const { return names_; }

 private:
  void judge_absent(BlockAnswer& answer) const;
  std::optional<MissReason> mismatch(const BlockHeader& header, const TokenDigest* tokens) const;
  std::string mismatch_text(const BlockHeader& header, BlockAnswer& answer) const;
  std::string identity_text(const BlockHeader& header, BlockAnswer& answer) const;

  FileSystem& file_system_;
  const std::filesystem::path root_;
  const ExpectedBlocks expected_;
  const NamespaceNames names_;
  HeaderReader headers_;
  BlockVerifier verifier_;
};

// REQUIRES: the prefix is not empty.
Result<std::vector<BlockHash>> find_quarantined_keys(FileSystem& file_system,
                                                     std::string_view hex_prefix);

Result<PromptAnswer> why_prompt(FileSystem& file_system, const std::filesystem::path& root,
                                const PromptQuestion& question);

}  // namespace kvkeep
