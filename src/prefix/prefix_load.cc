// PrefixCache::load(): the blocks of a match, as far as they can be used.
#include <algorithm>

#include "kvkeep/layer_cut.h"
#include "prefix/prefix_state.h"
#include "prefix/tensor_leaves.h"

namespace kvkeep {
namespace {

bool cuttable(const LoadedBlock& block, size_t layer) {
  return is_cuttable(type_of_layer(block, layer), block.layers[layer]);
}

// True if a block that was loaded can stand where the match has it.
bool fits(const LoadedBlock& first, const LoadedBlock& block, uint32_t tokens) {
  if (block.info.token_count != tokens || block.layers.size() != first.layers.size()) return false;
  for (size_t i = 0; i < block.layers.size(); ++i) {
    if (is_placeholder(block.layers[i])) continue;
    const bool cut = cuttable(block, i);
    if (cut != cuttable(first, i) && !is_placeholder(first.layers[i])) return false;
    if (!cut) continue;
    if (tokens_in(block.layers[i]) != tokens) return false;
    if (!same_form(tensor_leaves(first.layers[i]), tensor_leaves(block.layers[i]))) return false;
  }
  return true;
}

bool can_be_cut(const LoadedBlock& block) {
  for (size_t i = 0; i < block.layers.size(); ++i) {
    if (!cuttable(block, i)) return false;
  }
  return true;
}

// Gives up blocks at the end until the prefix covers at most `most` tokens and ends with a state of
// every layer. Returns how many.
size_t walk_back(LoadedPrefix& prefix, uint64_t most) {
  const size_t before = prefix.blocks.size();
  while (!prefix.blocks.empty()) {
    const LoadedBlock& last = prefix.blocks.back();
    const bool cut = prefix.tokens > most;
    if (holds_whole_state(last) && (!cut || can_be_cut(last))) break;
    prefix.tokens -= last.info.token_count;
    prefix.blocks.pop_back();
  }
  prefix.tokens = std::min(prefix.tokens, most);
  return before - prefix.blocks.size();
}

}  // namespace

bool holds_whole_state(const LoadedBlock& block) {
  return std::none_of(block.layers.begin(), block.layers.end(), is_placeholder);
}

std::vector<BlockHash> keys_of(const PrefixMatch& match) {
  std::vector<BlockHash> keys;
  keys.reserve(match.blocks.size());
  for (const MatchedBlock& block : match.blocks) keys.push_back(block.key);
  return keys;
}

LoadedPrefix PrefixState::load(const PrefixMatch& match) {
  LoadedPrefix prefix;
  const std::vector<BlockHash> wanted = keys_of(match);
  BatchResult results = cache->load_blocks(wanted, BatchMode::kPrefix, {true, match.digests});
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].ok()) {
      prefix.end = results[i].status().miss_reason().value_or(MissReason::kUnreadable);
      // Under this key there is something else: it would be in the way of the right block.
      if (prefix.end == MissReason::kTokens) forget(wanted[i]);
      break;
    }
    const LoadedBlock& first = prefix.blocks.empty() ? *results[i] : prefix.blocks.front();
    if (!fits(first, *results[i], match.blocks[i].tokens)) {
      prefix.end = MissReason::kLayout;
      forget(wanted[i]);
      break;
    }
    prefix.tokens += results[i]->info.token_count;
    prefix.blocks.push_back(*std::move(results[i]));
  }
  count({{&PrefixStats::walked_back_blocks, walk_back(prefix, match.tokens)}});
  return prefix;
}

}  // namespace kvkeep
