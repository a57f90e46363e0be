// PrefixCache::match(): which blocks of a prompt are cached. Memory only.
#include <algorithm>
#include <numeric>

#include "prefix/prefix_hold.h"
#include "prefix/prefix_state.h"

namespace kvkeep {
namespace {

std::vector<BlockHash> keys_of(const std::vector<PromptBlock>& blocks) {
  std::vector<BlockHash> keys;
  keys.reserve(blocks.size());
  for (const PromptBlock& block : blocks) keys.push_back(block.key);
  return keys;
}

std::string count_text(uint64_t count, const std::string& one) {
  return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

// The blocks that were found, and what holds them.
class Finding {
 public:
  Finding(PrefixState& state, const Prompt& prompt, const KeyChain& chain)
      : state_(state), keys_(*state.keys), prompt_(prompt), chain_(chain) {}

  Status look_up(uint64_t limit) {
    KVKEEP_TRY_ASSIGN(all_, keys_.full_blocks(chain_, prompt_, limit));
    KVKEEP_TRY(hold_blocks(all_));
    full_blocks_ = found_.size();
    end_ = leases_.back().end();
    if (state_.keeps_tails()) KVKEEP_TRY(look_for_tail(limit));
    return {};
  }

  PrefixMatch deliver() {
    PrefixMatch match;
    auto hold = std::make_shared<PrefixHold>(state_.pool);
    for (Lease& lease : leases_) hold->take(std::move(lease));
    const std::vector<BlockId>& ids = hold->acquire(pool_keys());
    const bool pool_is_full = ids.size() < found_.size();
    found_.erase(found_.begin() + static_cast<std::ptrdiff_t>(ids.size()), found_.end());
    for (size_t i = 0; i < ids.size(); ++i) {
      match.blocks.push_back(
          {found_[i].block.key, found_[i].block.tokens(), found_[i].held.source});
      match.digests.push_back(found_[i].block.digest);
    }
    const uint64_t covered = found_.empty() ? 0 : found_.back().block.end;
    match.tokens = std::min<uint64_t>(covered, prompt_.tokens.size() - 1);
    match.table = {{}, ids, covered, std::move(hold)};
    match.end = pool_is_full ? MissReason::kNoMemory : end_;
    match.text = text(match, pool_is_full);
    return match;
  }

 private:
  struct Found {
    PromptBlock block;
    LeasedBlock held;
  };

  Status hold_blocks(const std::vector<PromptBlock>& blocks) {
    KVKEEP_TRY_ASSIGN(Lease lease, state_.cache->lease(keys_of(blocks), state_.options.lease,
                                                       "a matched prompt"));
    for (size_t i = 0; i < lease.size(); ++i) found_.push_back({blocks[i], lease.blocks()[i]});
    leases_.push_back(std::move(lease));
    return {};
  }

  // The longest partial block that continues what was found.
  Status look_for_tail(uint64_t limit) {
    const uint64_t begin = found_.empty() ? 0 : found_.back().block.end;
    std::optional<BlockHash> parent;
    if (!found_.empty()) parent = found_.back().block.key;
    const BlockHash listed_under = tail_parent(chain_, parent);
    const uint64_t longest = std::min<uint64_t>(limit - begin, keys_.block_size() - 1);
    for (const uint32_t tokens : lengths_to_try(listed_under, longest)) {
      if (tokens > longest) continue;
      KVKEEP_TRY_ASSIGN(PromptBlock tail,
                        keys_.block(chain_, prompt_, parent, begin, begin + tokens));
      if (!state_.cache->has_block(tail.key)) continue;
      state_.tails.add(listed_under, tokens);
      return hold_blocks({std::move(tail)});
    }
    if (longest + 1 == keys_.block_size()) state_.tails.note(listed_under);
    return {};
  }

  // Tails on disk may be of an earlier run: then every length is tried, once per parent.
  std::vector<uint32_t> lengths_to_try(const BlockHash& parent, uint64_t longest) {
    const auto known = state_.tails.lengths(parent);
    if (known) return *known;
    if (state_.options.partial_tails != PartialTails::kAll) return {};
    std::vector<uint32_t> all(longest);
    std::iota(all.rbegin(), all.rend(), 1);
    return all;
  }

  std::vector<PoolKey> pool_keys() const {
    std::vector<PoolKey> keys;
    keys.reserve(found_.size());
    for (const Found& one : found_) {
      keys.push_back({one.block.key, one.block.tokens(), one.held.generation});
    }
    return keys;
  }

  std::string text(const PrefixMatch& match, bool pool_is_full) const {
    std::string text = count_text(match.tokens, "token") + " of " +
                       std::to_string(prompt_.tokens.size()) + " in " +
                       count_text(match.blocks.size(), "block");
    if (pool_is_full) return text + "; the block pool is full";
    if (!match.end) return text + "; no full block is missing";
    const PromptBlock& next = all_[full_blocks_];
    return text + "; block " + next.key.short_hex() + " (tokens " + std::to_string(next.begin) +
           " to " + std::to_string(next.end - 1) + "): " + std::string(explain(*match.end));
  }

  PrefixState& state_;
  const PromptKeys& keys_;
  const Prompt& prompt_;
  const KeyChain& chain_;
  std::vector<PromptBlock> all_;  // Every full block of the prompt.
  std::vector<Found> found_;
  size_t full_blocks_ = 0;  // Of these.
  std::vector<Lease> leases_;
  std::optional<MissReason> end_;
};

}  // namespace

Result<PrefixMatch> PrefixState::find(const Prompt& prompt) {
  if (prompt.tokens.empty()) {
    PrefixMatch nothing;
    nothing.text = "0 tokens: the prompt is empty";
    return nothing;
  }
  KVKEEP_TRY_ASSIGN(const KeyChain chain, keys->chain_of(prompt));
  Finding finding(*this, prompt, chain);
  KVKEEP_TRY(finding.look_up(prompt.tokens.size() - (ends_at_blocks() ? 1 : 0)));
  return finding.deliver();
}

}  // namespace kvkeep
