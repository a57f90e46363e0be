// Where the chain of a prompt's blocks breaks in a store, and what is there instead.
#include <algorithm>

#include "directory/field_difference.h"
#include "directory/why.h"

namespace kvkeep {
namespace {

constexpr uint64_t kBlockSizesTried = 4096;

std::string range_text(const BlockAnswer& block) {
  const uint64_t first = block.first_token.value_or(0);
  return "tokens " + std::to_string(first) + " to " + std::to_string(first + block.token_count - 1);
}

std::string blocks_text(uint64_t count) {
  return std::to_string(count) + (count == 1 ? " block" : " blocks");
}

// One question about a prompt.
class PromptWalk {
 public:
  PromptWalk(const PromptQuestion& question, const KeyChain& chain, BlockJudge& judge)
      : question_(question), chain_(chain), judge_(judge) {}

  Result<PromptAnswer> run();

 private:
  uint64_t tokens() const { return question_.tokens.size(); }
  Result<BlockHash> key_of(uint64_t begin, uint64_t end) const {
    return chain_.next(parent_, question_.tokens.subspan(begin, end - begin));
  }
  // Judges tokens [begin, end) as the next block. True if a load would take it.
  Result<bool> take(uint64_t begin, uint64_t end);
  Status take_tail(uint64_t begin);
  Status count_stranded(uint64_t begin);
  Status look_for_namespaces();
  Status look_for_block_size();
  std::string text() const;
  std::string miss_text() const;
  std::string hint() const;

  const PromptQuestion& question_;
  const KeyChain& chain_;
  BlockJudge& judge_;
  std::optional<BlockHash> parent_;
  PromptAnswer answer_;
};

Result<bool> PromptWalk::take(uint64_t begin, uint64_t end) {
  KVKEEP_TRY_ASSIGN(BlockHash key, key_of(begin, end));
  KVKEEP_TRY_ASSIGN(const TokenDigest digest,
                    token_digest(question_.tokens.subspan(begin, end - begin)));
  BlockAnswer block = judge_.judge(key, &digest);
  block.first_token = begin;
  block.token_count = end - begin;
  const bool found = !block.reason;
  if (found) answer_.tokens = end;
  answer_.reason = block.reason;
  answer_.blocks.push_back(std::move(block));
  parent_ = std::move(key);
  if (question_.progress) question_.progress(answer_.blocks.size(), answer_.full_blocks);
  return found;
}

// The longest partial block that is stored after the full ones.
Status PromptWalk::take_tail(uint64_t begin) {
  for (uint64_t end = tokens(); end > begin; --end) {
    KVKEEP_TRY_ASSIGN(const BlockHash key, key_of(begin, end));
    if (judge_.is_stored(key)) return take(begin, end).status();
  }
  if (begin == 0) answer_.reason = MissReason::kAbsent;
  return {};
}

// `begin`: of the block after the miss.
Status PromptWalk::count_stranded(uint64_t begin) {
  for (uint64_t end = begin + question_.block_size; end <= tokens(); end += question_.block_size) {
    KVKEEP_TRY_ASSIGN(BlockHash key, key_of(end - question_.block_size, end));
    answer_.stranded_blocks += judge_.is_stored(key) ? 1 : 0;
    parent_ = std::move(key);
  }
  return {};
}

Status PromptWalk::look_for_namespaces() {
  const uint64_t first = std::min<uint64_t>(tokens(), question_.block_size);
  for (const auto& [digest, info] : judge_.names().all()) {
    const Result<BlockHash> root = BlockHash::from_hex(digest);
    if (!info->is_root || !root.ok() || chain_.root() == *root) continue;
    const Result<BlockHash> key = chain_.next(*root, question_.tokens.first(first));
    if (!key.ok() || !judge_.is_stored(*key)) continue;
    answer_.elsewhere.push_back({*info, differences(info->fields, question_.fields)});
  }
  std::stable_sort(answer_.elsewhere.begin(), answer_.elsewhere.end(),
                   [](const OtherNamespace& a, const OtherNamespace& b) {
                     return a.differences.size() < b.differences.size();
                   });
  return {};
}

// The largest number of first tokens that some block of another size holds.
Status PromptWalk::look_for_block_size() {
  parent_.reset();
  for (uint64_t size = std::min(tokens(), kBlockSizesTried); size > 0; --size) {
    KVKEEP_TRY_ASSIGN(const BlockHash key, key_of(0, size));
    if (!judge_.is_stored(key)) continue;
    const std::optional<BlockHeader> header = judge_.header_of(key);
    // A partial block of the size asked for says nothing about sizes.
    if (!header || header->info.block_size == question_.block_size) continue;
    answer_.stored_block_size = header->info.block_size;
    return {};
  }
  return {};
}

std::string PromptWalk::hint() const {
  if (!answer_.elsewhere.empty()) return difference_text(answer_.elsewhere.front().differences);
  if (!answer_.stored_block_size) return "";
  return "stored in blocks of " + std::to_string(*answer_.stored_block_size) +
         " tokens; asked for blocks of " + std::to_string(question_.block_size);
}

std::string PromptWalk::miss_text() const {
  const std::string more = hint();
  std::string text(name_of(*answer_.reason));
  if (!answer_.blocks.empty()) {
    text = range_text(answer_.blocks.back()) + ": " + text;
    if (more.empty()) text += ", " + answer_.blocks.back().text;
  }
  return more.empty() ? text : text + "; " + more;
}

std::string PromptWalk::text() const {
  const bool ends_with_miss = answer_.reason && !answer_.blocks.empty();
  const uint64_t found = answer_.blocks.size() - (ends_with_miss ? 1 : 0);
  std::string text = "nothing of the prompt is there";
  if (found > 0) {
    text = std::to_string(answer_.tokens) + " of " + std::to_string(tokens()) +
           " tokens are there, in " + blocks_text(found);
  }
  if (answer_.reason) text += "; " + miss_text();
  if (answer_.stranded_blocks > 0) {
    text += "; " + blocks_text(answer_.stranded_blocks) + " behind it cannot be used without it";
  }
  return text;
}

Result<PromptAnswer> PromptWalk::run() {
  const uint64_t size = question_.block_size;
  answer_.full_blocks = tokens() / size;
  bool whole = true;
  uint64_t end = 0;
  while (whole && end + size <= tokens()) {
    end += size;
    KVKEEP_TRY_ASSIGN(whole, take(end - size, end));
  }
  KVKEEP_TRY(whole ? take_tail(end) : count_stranded(end));
  if (answer_.reason == MissReason::kAbsent && answer_.tokens == 0) {
    if (chain_.root()) KVKEEP_TRY(look_for_namespaces());
    if (answer_.elsewhere.empty()) KVKEEP_TRY(look_for_block_size());
  }
  answer_.text = text();
  return std::move(answer_);
}

}  // namespace

Result<PromptAnswer> why_prompt(FileSystem& file_system, const std::filesystem::path& root,
                                const PromptQuestion& question) {
  if (question.tokens.empty()) return Status(Code::kInvalidArgument, "tokens: there are none");
  if (question.block_size == 0) {
    return Status(Code::kInvalidArgument, "block_size: must be at least 1 token");
  }
  KVKEEP_TRY_ASSIGN(const KeyChain chain, KeyChain::open(question.fields, question.recipe));
  BlockJudge judge(file_system, root, question.expected);
  return PromptWalk(question, chain, judge).run();
}

}  // namespace kvkeep
