#include "directory/why.h"

#include <algorithm>

#include "directory/field_difference.h"
#include "disk/quarantine.h"
#include "disk/store_layout.h"
#include "hash/signature.h"
#include "index/expectation.h"
#include "kvkeep/size_string.h"

namespace kvkeep {
namespace {

bool is_gone(const Status& status) {
  return status.code() == Code::kNotFound && !status.miss_reason();
}

void refuse(BlockAnswer& answer, MissReason reason, const std::string& detail) {
  answer.reason = reason;
  answer.text = std::string(explain(reason)) + (detail.empty() ? "" : ": " + detail);
}

// What a load of a file that was read whole would count.
MissReason reason_of(const Status& verdict) {
  if (verdict.miss_reason()) return *verdict.miss_reason();
  return verdict.code() == Code::kResourceExhausted ? MissReason::kNoMemory
                                                    : MissReason::kUnreadable;
}

std::string asked_text(const std::string& what, const std::string& stored,
                       const std::string& asked) {
  return what + " " + stored + " is stored; asked for " + asked;
}

Layout layout_of(const BlockHeader& header) {
  LayoutTable table;
  return *table.intern(header);
}

}  // namespace

BlockJudge::BlockJudge(FileSystem& file_system, std::filesystem::path root,
                       const ExpectedBlocks& expected)
    : file_system_(file_system),
      root_(std::move(root)),
      expected_(expected),
      names_(NamespaceNames::read(file_system)),
      headers_(file_system),
      verifier_(file_system, make_file_pool()) {}

BlockAnswer BlockJudge::judge(const BlockHash& key, const TokenDigest* tokens) {
  BlockAnswer answer{key, root_ / block_path(key)};
  const Result<BlockHeader> header = headers_.read(block_path(key));
  if (is_gone(header.status())) {
    judge_absent(answer);
    return answer;
  }
  if (const auto stat = file_system_.stat(block_path(key)); stat.ok())
    answer.file_size = stat->size;
  if (!header.ok()) {
    refuse(answer, reason_unread(header.status()), header.status().message());
    return answer;
  }
  answer.token_count = header->info.token_count;
  if (!(header->hash == key)) {
    refuse(answer, MissReason::kDamaged, "the file says that it is " + header->hash.short_hex());
    return answer;
  }
  if (const auto reason = mismatch(*header, tokens)) {
    answer.reason = reason;
    refuse(answer, *reason, mismatch_text(*header, answer));
    return answer;
  }
  const Status verdict = verifier_.verify(key, answer.file_size).status();
  if (is_gone(verdict)) {
    judge_absent(answer);
  } else if (!verdict.ok()) {
    refuse(answer, reason_of(verdict), verdict.message());
  } else {
    answer.text = "a load would take it: " + std::to_string(answer.token_count) + " tokens, " +
                  format_bytes(answer.file_size);
  }
  return answer;
}

void BlockJudge::judge_absent(BlockAnswer& answer) const {
  const auto aside = find_quarantined_keys(file_system_, answer.key.to_hex());
  const bool damaged =
      aside.ok() && std::find(aside->begin(), aside->end(), answer.key) != aside->end();
  if (damaged) {
    refuse(answer, MissReason::kDamaged,
           "its file is kept aside in " + std::string(kQuarantineDir) + "/");
  } else {
    refuse(answer, MissReason::kAbsent, "");
  }
}

std::optional<MissReason> BlockJudge::mismatch(const BlockHeader& header,
                                               const TokenDigest* tokens) const {
  Expectation expected;
  expected.model_name = expected_.layout.model_name;
  expected.num_layers = expected_.layout.num_layers;
  expected.block_size = expected_.layout.block_size;
  expected.turboquant_bits = expected_.layout.turboquant_bits;
  if (expected_.layout.layer_types) {
    expected.layer_types = storage_types(*expected_.layout.layer_types);
  }
  expected.identity = expected_.identity ? identity_digest(*expected_.identity) : header.identity;
  if (const auto reason = incompatibility(expected, layout_of(header))) return reason;
  const bool other_tokens =
      tokens != nullptr && header.info.tokens && *header.info.tokens != *tokens;
  return other_tokens ? std::optional(MissReason::kTokens) : std::nullopt;
}

// REQUIRES: answer.reason is set.
std::string BlockJudge::mismatch_text(const BlockHeader& header, BlockAnswer& answer) const {
  const ExpectedLayout& asked = expected_.layout;
  switch (*answer.reason) {
    case MissReason::kIdentity:
      return identity_text(header, answer);
    case MissReason::kModel:
      return asked_text("model", "'" + header.info.model_name + "'", "'" + asked.model_name + "'");
    case MissReason::kBlockSize:
      return asked_text("block size", std::to_string(header.info.block_size),
                        std::to_string(asked.block_size));
    case MissReason::kLayout:
      if (asked.num_layers == 0 || asked.num_layers == header.info.num_layers) return "";
      return asked_text("number of layers", std::to_string(header.info.num_layers),
                        std::to_string(asked.num_layers));
    default:
      return "";
  }
}

std::string BlockJudge::identity_text(const BlockHeader& header, BlockAnswer& answer) const {
  const Fields& asked = *expected_.identity;
  const auto stored = names_.find(header.identity);
  if (header.identity && stored == nullptr) {
    return "what identity " + header.identity->substr(0, 16) + " is made of is not known here";
  }
  answer.differences = differences(stored != nullptr ? stored->fields : Fields(), asked);
  return difference_text(answer.differences);
}

bool BlockJudge::is_stored(const BlockHash& key) const {
  const Result<FileStat> stat = file_system_.stat(block_path(key));
  return stat.ok() && stat->kind == FileKind::kFile;
}

std::optional<BlockHeader> BlockJudge::header_of(const BlockHash& key) {
  Result<BlockHeader> header = headers_.read(block_path(key));
  return header.ok() ? std::optional(*std::move(header)) : std::nullopt;
}

Result<std::vector<BlockHash>> find_quarantined_keys(FileSystem& file_system,
                                                     std::string_view hex_prefix) {
  std::vector<BlockHash> keys;
  const Status listed = file_system.list_dir(kQuarantineDir, [&](const DirEntry& entry) {
    const bool matches = entry.name.compare(0, hex_prefix.size(), hex_prefix) == 0;
    if (!matches || !quarantine_number(entry.name)) return;
    keys.push_back(*BlockHash::from_hex(entry.name.substr(0, entry.name.find('-'))));
  });
  if (!listed.ok() && listed.code() != Code::kNotFound) return listed;
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

}  // namespace kvkeep
